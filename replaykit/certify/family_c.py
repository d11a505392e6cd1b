"""C: histories."""

from __future__ import annotations

from replaykit.certify import reading
from replaykit.certify.check import Check
from replaykit.certify.finding import Failed
from replaykit.certify.probe import SYSTEM, Probe, Step, call, calling, hello, result, says, text, tool
from replaykit.certify.profile import Profile
from replaykit.certify.views import Seen, Views
from replaykit.controls.replies import Reply

GREETING = "Hi! How can I help you today?"
ODD = "  \u00e9 \U0001f600 \u2028 \u05d0\u05d1 a\r\nb \t "
STOPS = ("###STOP###", "  ###STOP###  ", "Thank you, ###STOP### that is all.")
TOOLS = [tool("get_x"), tool("get_y")]


def same_history(seen: Seen, profile: Profile, code: str = "history_changed") -> None:
    """Check that the history on the wire is the native one, under the declared rewrites.

    Raises:
        Failed: with the first place where they part.
    """
    native = seen.step.messages
    expected = reading.joined(reading.expected_atoms(native, profile))
    found = reading.joined(reading.wire_atoms(seen.only().asked.messages, native, profile))
    for i, (a, b) in enumerate(zip(expected, found, strict=False)):
        if a != b:
            raise Failed(code, f"{seen.step.name}: item {i} is {str(b)[:80]!r}, not {str(a)[:80]!r}")
    if len(expected) != len(found):
        raise Failed(code, f"{seen.step.name}: {len(found)} items, not {len(expected)}")


def _kept_apart(seen: Seen, profile: Profile) -> None:
    """Where the wire has one item a message, count, order and roles are the native ones too."""
    if profile.wire != "openai-chat":
        return
    roles = [m["role"] for m in seen.step.messages]
    found = [m["role"] for m in seen.only().body["messages"]]
    system = profile.dialect.get("system_role", "system")
    if found != [system if r == "system" else r for r in roles]:
        raise Failed("roles_changed", f"{seen.step.name}: {found}")


def full_history() -> list[dict]:
    """Every role, a turn of two calls, odd characters, blanks at both ends."""
    return [
        text("system", SYSTEM["learner"] + " " + ODD),
        text("assistant", GREETING),
        text("user", ODD),
        calling(
            [call("call_a", "get_x", '{"key": "\\u00e9 a"}'), call("call_b", "get_y", '{"key": "b", "n": 1.0}')],
            "Looking.",
        ),
        result("call_a", ODD),
        result("call_b", "second"),
        text("user", "  and then?  "),
        text("user", "Still there?"),
    ]


def _histories(profile: Profile) -> list[Probe]:
    customer = [
        text("system", SYSTEM["customer"]),
        text("user", ODD),
        text("assistant", ODD),
        text("user", "Goodbye " + ODD),
    ]
    judge = [text("system", SYSTEM["judge"]), text("user", ODD)]
    named = (("learner", full_history(), TOOLS), ("customer", customer, None), ("judge", judge, None))
    return [Probe("roles", tuple(Step(seat, seat, messages, tools=tools) for seat, messages, tools in named))]


def _judge_histories(views: Views) -> None:
    for seen in views.steps:
        same_history(seen, views.profile)
        _kept_apart(seen, views.profile)


def growing(turns: int) -> list[list[dict]]:
    """The histories of a learner's conversation, one a turn; every third turn calls a tool."""
    history, found = [text("system", SYSTEM["learner"]), text("assistant", GREETING)], []
    for i in range(turns):
        history = [*history, text("user", f"Question {i}?")]
        if i % 3 == 2:
            history = [
                *history,
                calling([call(f"call_{i}", "get_x", '{"key": "k"}')]),
                result(f"call_{i}", f"value {i}"),
            ]
        found.append(history)
        history = [*history, text("assistant", f"Answer {i}.")]
    return found


def _conversation(profile: Profile) -> list[Probe]:
    return [Probe("twelve", tuple(Step(f"turn-{i}", "learner", h, tools=TOOLS) for i, h in enumerate(growing(12))))]


def _judge_conversation(views: Views) -> None:
    before: list = []
    for seen in views.steps:
        found = reading.wire_atoms(seen.only().asked.messages, seen.step.messages, views.profile)
        if found[: len(before)] != before:
            raise Failed("history_not_kept", seen.step.name)
        same_history(seen, views.profile, "history_not_kept")
        before = found


def _empty_contents(profile: Profile) -> list[Probe]:
    turn = [calling([call("call_a", "get_x", '{"key": "a"}')]), result("call_a", ""), text("user", "And?")]
    again = [*turn, calling([call("call_b", "get_x", '{"key": "b"}')]), result("call_b", ""), text("user", "So?")]
    start = [text("system", SYSTEM["learner"]), text("assistant", GREETING), text("user", "Look.")]
    return [
        Probe(
            "null",
            (Step("one", "learner", start + turn, tools=TOOLS), Step("two", "learner", start + again, tools=TOOLS)),
        )
    ]


def _judge_empty(views: Views) -> None:
    for seen in views.steps:
        if any(t in ("None", "null") for t in _texts(seen.only().body)):
            raise Failed("null_as_text", seen.step.name)
        if views.profile.wire == "openai-chat":
            _one_form(seen, views.profile)
        same_history(seen, views.profile)


def _one_form(seen: Seen, profile: Profile) -> None:
    form = {"null": None, "empty": "", "omit": "absent"}[profile.dialect.get("no_text", "null")]
    for message in seen.only().body["messages"]:
        if message.get("tool_calls") and message.get("content", "absent") != form:
            raise Failed("null_form", f"{seen.step.name}: {message.get('content', 'absent')!r}")
        if message["role"] == "tool" and not isinstance(message["content"], str):
            raise Failed("null_form", f"{seen.step.name}: a result that is no text")


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [t for p in parts for t in _texts(p)]


def _pairs(profile: Profile) -> list[Probe]:
    start = [text("system", SYSTEM["learner"]), text("user", "Look.")]
    turn = calling([call("call_a", "get_x", '{"key": "a"}'), call("call_b", "get_y", '{"key": "b"}')])
    a, b, end = result("call_a", "A"), result("call_b", "B"), text("user", "And?")
    return [
        Probe(
            "pairs",
            (
                Step("in-order", "learner", [*start, turn, a, b, end], tools=TOOLS),
                Step("swapped", "learner", [*start, turn, b, a, end], tools=TOOLS, healthy=False, expect="refused"),
                Step("missing", "learner", [*start, turn, a, end], tools=TOOLS, healthy=False, expect="refused"),
                Step("orphan", "learner", [*start, a, end], tools=TOOLS, healthy=False, expect="refused"),
            ),
        )
    ]


def _judge_pairs(views: Views) -> None:
    for seen in views.steps:
        if seen.step.expect == "refused" and seen.wire:
            raise Failed("bad_pairing_sent", seen.step.name)
        if seen.step.expect == "refused" and seen.outcome != "pairing":
            raise Failed("pairing_unclassified", f"{seen.step.name}: {seen.outcome}")
    seen = views.step("in-order")
    same_history(seen, views.profile, "ids_renumbered")
    if views.profile.wire in ("openai-chat", "openai-responses"):
        ids = [c["id"] for m in seen.only().asked.messages for c in m.get("tool_calls", ())]
        if ids != ["call_a", "call_b"]:
            raise Failed("ids_renumbered", str(ids))


def _flipped(profile: Profile) -> list[Probe]:
    second = [
        text("system", SYSTEM["customer"]),
        text("user", GREETING),
        text("assistant", "My own words."),
        text("user", "The agent's words."),
    ]
    return [Probe("second-turn", (Step("customer", "customer", second), Step("first", "customer", second[:2])))]


def _judge_flipped(views: Views) -> None:
    for seen in views.steps:
        found = reading.joined(reading.wire_atoms(seen.only().asked.messages, seen.step.messages, views.profile))
        if found != reading.joined(reading.atoms(seen.step.messages)):
            raise Failed("roles_flipped", f"{seen.step.name}: {[a[0] for a in found]}")
        if found[-1][0] != "user":
            raise Failed("roles_flipped", f"{seen.step.name}: the last role is {found[-1][0]}")


def _stopping(profile: Profile) -> list[Probe]:
    steps = [
        Step(f"stop-{i}", "customer", hello("customer", f"Stop {i}."), fault=says(Reply(stop)))
        for i, stop in enumerate(STOPS)
    ]
    return [Probe("stops", (*steps, Step("judge-after", "judge", hello("judge", "Grade."))))]


def _judge_stopping(views: Views) -> None:
    for seen, stop in zip(views.steps, STOPS, strict=False):
        if len(seen.wire) > 1:
            raise Failed("extra_request", f"{seen.step.name}: {len(seen.wire)} requests")
        if seen.only() and seen.delivered is not None and seen.delivered.content != stop:
            raise Failed("stop_token_changed", repr(seen.delivered.content))
    between = [e for e in views.wire if e.at > views.steps[0].data["began_us"] and e.seat == "learner"]
    if between:
        raise Failed("extra_request", "the learner was asked after the stop")


def _large(profile: Profile) -> list[Probe]:
    big = "x\u00e9" * (512 * 1024)
    start = [text("system", SYSTEM["learner"]), text("user", "Look.")]
    one = [*start, calling([call("call_a", "get_x", '{"key": "a"}')]), result("call_a", big)]
    many = [
        *start,
        *(m for i in range(100) for m in (text("assistant", f"Answer {i}."), text("user", f"Question {i}?"))),
    ]
    return [Probe("large", (Step("one-mebibyte", "learner", one, tools=TOOLS), Step("two-hundred", "learner", many)))]


def _judge_large(views: Views) -> None:
    for seen in views.steps:
        same_history(seen, views.profile, "truncated")


def checks() -> list[Check]:
    """C12 to C18."""
    return [
        Check(
            "C12",
            "a history arrives whole: count, order, roles and exact texts",
            "MUST",
            "seat",
            ("history_changed", "roles_changed"),
            _histories,
            _judge_histories,
        ),
        Check(
            "C13",
            "each turn's history begins with that of the turn before",
            "MUST",
            "seat",
            ("history_not_kept",),
            _conversation,
            _judge_conversation,
        ),
        Check(
            "C14",
            "no content and empty content have one declared form",
            "MUST",
            "seat",
            ("null_as_text", "null_form", "history_changed"),
            _empty_contents,
            _judge_empty,
        ),
        Check(
            "C15",
            "every result follows its call, or nothing is sent",
            "MUST",
            "seat",
            ("bad_pairing_sent", "pairing_unclassified", "ids_renumbered"),
            _pairs,
            _judge_pairs,
        ),
        Check(
            "C16",
            "the customer's roles arrive as tau2 flipped them",
            "MUST",
            "seat",
            ("roles_flipped",),
            _flipped,
            _judge_flipped,
        ),
        Check(
            "C17",
            "the customer's stop arrives byte for byte, and nobody but the judge is asked afterwards",
            "MUST",
            "seat",
            ("stop_token_changed", "extra_request"),
            _stopping,
            _judge_stopping,
        ),
        Check(
            "C18",
            "large results and long histories are not cut",
            "SHOULD",
            "transport",
            ("truncated",),
            _large,
            _judge_large,
        ),
    ]
