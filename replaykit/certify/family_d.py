"""D: tools and tool names."""

from __future__ import annotations

import json
from typing import Any

from replaykit import canonical
from replaykit.certify import reading
from replaykit.certify.check import Check
from replaykit.certify.family_c import TOOLS, same_history
from replaykit.certify.finding import Failed, Unseen
from replaykit.certify.probe import Probe, Step, call, calling, calls_back, hello, result, says, text, tool
from replaykit.certify.profile import Profile
from replaykit.certify.views import Seen, Views
from replaykit.controls.replies import Call, Reply

TEXT_WIRES = ("openai-chat", "openai-responses")
SYNTHETIC = {
    "type": "function",
    "function": {
        "name": "zz_synthetic_probe",
        "description": "Pr\u00fcft \u2603 and \u05d0.",
        "parameters": {
            "type": "object",
            "$defs": {"leaf": {"type": "string", "enum": ["b", "a"]}},
            "properties": {
                "zulu": {"$ref": "#/$defs/leaf"},
                "alpha": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                "deep": {
                    "type": "object",
                    "properties": {"x": {"type": "object", "properties": {"y": {"type": "number", "default": 0.0}}}},
                },
            },
            "required": ["zulu"],
        },
    },
}
NAMES = ("get_x", "n" * 64, "with-dash", "with_under", "Case_a", "case_a")
ODD_NAMES = ("functions.get_x:0", "get_x ", "GET_X", "never_offered")
ARGUMENTS = (
    '{"a": 1.0, "b": 1e3, "c": -0, "d": 9007199254740993}',
    '{"text": "\\u00e9 \\ud83d\\ude00 \\n"}',
    '{"z": {"y": [1, {"x": null}]}, "a": true}',
    json.dumps({"blob": "k" * 10_000}),
)
BROKEN = (
    ("empty", ""),
    ("null", "null"),
    ("list", "[1]"),
    ("two", '{"a":1}{"a":2}'),
    ("double", '"{\\"a\\": 1}"'),
    ("cut", '{"a": 1'),
    ("words", "a = 1"),
)
NATIVE = (("duplicate", '{"a": 1, "a": 2}'), ("nan", '{"a": NaN}'))
IDS = ("call_1", "functions.x:0", "i" * 40)


def tools_equal(seen: Seen, profile: Profile) -> None:
    """Check that the tools on the wire are the native ones: names, order, keys, their order, defaults, references.

    Raises:
        Failed: with what differs.
    """
    expected, found = reading.expected_tools(seen.step.tools or [], profile), reading.tools(seen.only().body, profile)
    names, given = [t["name"] for t in expected], [t.get("name") for t in found]
    if names != given:
        raise Failed("tool_order" if sorted(names) == sorted(map(str, given)) else "tools_changed", f"{given[:5]}")
    for a, b in zip(expected, found, strict=True):
        for member in ("description", "parameters"):
            if canonical.sorted_(a.get(member)) != canonical.sorted_(b.get(member)):
                raise Failed("schema_changed", f"{a['name']}: {member}")
            if canonical.ordered(a.get(member)) != canonical.ordered(b.get(member)):
                raise Failed("schema_key_order", f"{a['name']}: {member}")


def _panel_tools(views: Any) -> None:
    seen = views.step("sentinel-learner")
    if not seen.step.tools or seen.step.tools[-1] != SYNTHETIC:
        raise Unseen("the synthetic schema was not offered")
    tools_equal(seen, views.profile)
    for other in views.episode_requests():
        tools_equal(other, views.profile)


def _choices(profile: Profile) -> list[Probe]:
    return [
        Probe(
            "choices",
            (
                Step("without", "learner", hello("learner")),
                Step("with", "learner", hello("learner"), tools=TOOLS),
                Step("none", "learner", hello("learner"), tools=TOOLS, tool_choice="none"),
                Step("customer", "customer", hello("customer")),
                Step("judge", "judge", hello("judge")),
            ),
        )
    ]


def _choice(body: dict, wire: str) -> str | None:
    if wire == "gemini-generate":
        mode = body.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode")
        return mode.lower() if mode else None
    choice = body.get("tool_choice")
    return choice["type"] if isinstance(choice, dict) else choice


def _judge_choices(views: Views) -> None:
    for seen in views.steps:
        body, choice = seen.only().body, _choice(seen.only().body, views.profile.wire)
        if not seen.step.tools and ("tools" in body or choice is not None):
            raise Failed("tools_without_tools", seen.step.name)
        if seen.step.tools and choice != (seen.step.tool_choice or "auto"):
            raise Failed("tool_choice", f"{seen.step.name}: {choice}")


def _redundant(profile: Profile) -> list[Probe]:
    def history(outer: str | None) -> list[dict]:
        return [
            *hello("learner"),
            calling([call("call_a", "get_x", '{"key": "a"}', outer)]),
            result("call_a", "A"),
            text("user", "So?"),
        ]

    return [
        Probe(
            "names",
            (
                Step("equal", "learner", history(None), tools=TOOLS),
                Step("unequal", "learner", history("get_y"), tools=TOOLS, healthy=False, expect="refused"),
                Step("empty-outer", "learner", history(""), tools=TOOLS, healthy=False, expect="refused"),
            ),
        )
    ]


def _judge_redundant(views: Views) -> None:
    for seen in views.steps:
        if seen.step.expect != "refused":
            continue
        if seen.wire:
            raise Failed("mismatch_sent", seen.step.name)
        if seen.lost != "tool_name_mismatch":
            raise Failed("mismatch_unclassified", f"{seen.step.name}: {seen.outcome}")
    for message in views.step("equal").only().body.get("messages", ()):
        for sent in message.get("tool_calls") or ():
            if "name" not in sent and "redundant_tool_name" not in views.profile.rewrites:
                raise Failed("undeclared_rewrite", "the second name is dropped, which the transport does not declare")


def _exact_names(profile: Profile) -> list[Probe]:
    offered = [tool(n) for n in NAMES]
    return [Probe("exact", tuple(_called(f"name-{i}", n, offered) for i, n in enumerate(NAMES)))]


def _called(name: str, function: str, offered: list[dict]) -> Step:
    return Step(
        name,
        "learner",
        hello("learner", f"Call {name}."),
        tools=offered,
        fault=calls_back(Call(f"call_{name}", function, '{"key": "k"}')),
    )


def _judge_exact(views: Views) -> None:
    for seen, name in zip(views.steps, NAMES, strict=True):
        offered = [t["name"] for t in reading.tools(seen.only().body, views.profile)]
        got = [c.name for c in seen.reply.tool_calls] if seen.reply else None
        if got is not None and got != [name]:
            raise Failed("name_changed", f"{got} instead of {name!r}")
        if offered.count(name) != 1:
            raise Failed("name_changed", f"{name!r} was offered as {offered}")


def _odd_names(profile: Profile) -> list[Probe]:
    return [Probe("odd", tuple(_called(f"odd-{i}", n, TOOLS) for i, n in enumerate(ODD_NAMES)))]


def _judge_odd(views: Views) -> None:
    for seen, name in zip(views.steps, ODD_NAMES, strict=True):
        seen.only()
        if seen.reply is not None and [c.name for c in seen.reply.tool_calls] != [name]:
            raise Failed("name_repaired", f"{name!r} came as {[c.name for c in seen.reply.tool_calls]}")


def _arguments(profile: Profile) -> list[Probe]:
    return [
        Probe(
            "kinds",
            tuple(
                Step(
                    f"arguments-{i}",
                    "learner",
                    hello("learner", f"Arguments {i}."),
                    tools=TOOLS,
                    fault=calls_back(Call(f"call_{i}", "get_x", a)),
                )
                for i, a in enumerate(ARGUMENTS)
            ),
        )
    ]


def _judge_arguments(views: Views) -> None:
    for seen, given in zip(views.steps, ARGUMENTS, strict=True):
        if seen.only() and seen.reply is None:
            continue
        got = seen.reply.tool_calls[0].arguments if seen.reply.tool_calls else ""
        if not canonical.same(json.loads(got), json.loads(given)):
            raise Failed("argument_changed", seen.step.name)
        if views.profile.wire in TEXT_WIRES and got != given:
            raise Failed("argument_text_changed", seen.step.name)


def _broken(profile: Profile) -> list[Probe]:
    steps = [
        Step(
            f"broken-{name}",
            "learner",
            hello("learner", f"Broken {name}."),
            tools=TOOLS,
            fault=calls_back(Call(f"call_{i}", "get_x", a)),
            healthy=False,
        )
        for i, (name, a) in enumerate((*BROKEN, *NATIVE))
    ]
    return [Probe("broken", tuple(steps))]


def _judge_broken(views: Views) -> None:
    given = dict((*BROKEN, *NATIVE))
    for seen in views.steps:
        name = seen.step.name.removeprefix("broken-")
        seen.only()
        calls = seen.reply.tool_calls if seen.reply else ()
        if views.profile.wire in TEXT_WIRES and any(c.arguments != given[name] for c in calls):
            raise Failed("arguments_altered", f"{name}: {calls[0].arguments!r}")
        if name in dict(BROKEN) and seen.delivered is not None and not _nothing_asked(name, calls, views.profile):
            raise Failed("broken_accepted", f"{name}: {seen.outcome}")
        if seen.outcome not in ("invalid_arguments", "malformed", "malformed_call", "reply"):
            raise Failed("broken_unclassified", f"{name}: {seen.outcome}")


def _nothing_asked(name: str, calls: tuple, profile: Profile) -> bool:
    """On wires that carry objects, null is the same as no arguments, which is a call without any."""
    return profile.wire not in TEXT_WIRES and name == "null" and [c.arguments for c in calls] == ["{}"]


def _several(profile: Profile) -> list[Probe]:
    two = (Call("call_a", "get_x", '{"key": "a"}'), Call("call_b", "get_x", '{"key": "b"}'))
    steps = [
        Step(
            "two-calls",
            "learner",
            hello("learner", "Both."),
            tools=TOOLS,
            fault=calls_back(*two, content="I look twice."),
        )
    ]
    if profile.wire in ("openai-chat", "gemini-generate"):
        choices = Reply("First choice.", alternatives=(Reply("Second choice."),))
        steps.append(Step("two-choices", "learner", hello("learner", "Choose."), fault=says(choices), healthy=False))
    return [Probe("several", tuple(steps))]


def _judge_several(views: Views) -> None:
    seen = views.step("two-calls")
    seen.only()
    if seen.reply is not None:
        got = [(c.id, c.name, json.loads(c.arguments)) for c in seen.reply.tool_calls]
        if got != [("call_a", "get_x", {"key": "a"}), ("call_b", "get_x", {"key": "b"})]:
            raise Failed("calls_changed", str(got))
        if seen.reply.content != "I look twice.":
            raise Failed("text_lost", repr(seen.reply.content))
    for other in views.steps[1:]:
        other.only()
        if other.delivered is not None:
            raise Failed("choices_merged", repr(other.delivered.content))


def _ids(profile: Profile) -> list[Probe]:
    steps = []
    for i, id_ in enumerate(IDS):
        asked = hello("learner", f"Id {i}.")
        steps.append(
            Step(f"given-{i}", "learner", asked, tools=TOOLS, fault=calls_back(Call(id_, "get_x", '{"key": "k"}')))
        )
        follow = [*asked, calling([call(id_, "get_x", '{"key": "k"}')]), result(id_, f"value {i}")]
        steps.append(Step(f"returned-{i}", "learner", follow, tools=TOOLS))
    twice = (Call("same", "get_x", '{"key": "a"}'), Call("same", "get_y", '{"key": "b"}'))
    steps.append(Step("same-id", "learner", hello("learner", "Twice."), tools=TOOLS, fault=calls_back(*twice)))
    return [Probe("ids", tuple(steps))]


def _judge_ids(views: Views) -> None:
    for i, id_ in enumerate(IDS):
        given, returned = views.step(f"given-{i}"), views.step(f"returned-{i}")
        given.only()
        if given.reply is not None and [c.id for c in given.reply.tool_calls] != [id_]:
            raise Failed("ids_changed", f"{id_!r} came as {[c.id for c in given.reply.tool_calls]}")
        same_history(returned, views.profile, "ids_changed")
        sent = [c["id"] for m in returned.only().asked.messages for c in m.get("tool_calls", ())]
        if sent != [id_] and "call_ids" not in views.profile.rewrites:
            raise Failed("ids_changed", f"{id_!r} went out as {sent}")
    same = views.step("same-id")
    if same.only() and same.delivered is not None and [c.name for c in same.delivered.tool_calls] != ["get_x", "get_y"]:
        raise Failed("ids_changed", "two calls with one id")


def checks() -> list[Check]:
    """C19 to C27."""
    return [
        Check(
            "C19",
            "the panel's tools arrive whole and in order",
            "MUST",
            "panel",
            ("tools_changed", "tool_order", "schema_changed", "schema_key_order"),
            judge_panel=_panel_tools,
        ),
        Check(
            "C20",
            "no tools means no member, and a choice comes only with tools",
            "MUST",
            "seat",
            ("tools_without_tools", "tool_choice"),
            _choices,
            _judge_choices,
        ),
        Check(
            "C21",
            "two names of a call that disagree are refused before any normalisation",
            "MUST",
            "seat",
            ("mismatch_sent", "mismatch_unclassified", "undeclared_rewrite"),
            _redundant,
            _judge_redundant,
        ),
        Check(
            "C22",
            "tool names are delivered byte for byte",
            "MUST",
            "seat",
            ("name_changed",),
            _exact_names,
            _judge_exact,
        ),
        Check(
            "C23",
            "names that were not offered are never repaired",
            "MUST",
            "seat",
            ("name_repaired",),
            _odd_names,
            _judge_odd,
        ),
        Check(
            "C24",
            "arguments keep their values, kinds and text",
            "MUST",
            "seat",
            ("argument_changed", "argument_text_changed"),
            _arguments,
            _judge_arguments,
        ),
        Check(
            "C25",
            "broken arguments are classified, never repaired and never asked for again",
            "MUST",
            "seat",
            ("arguments_altered", "broken_accepted", "broken_unclassified", "retried"),
            _broken,
            _judge_broken,
        ),
        Check(
            "C26",
            "several calls and a text beside them all arrive; a second choice is refused",
            "MUST",
            "seat",
            ("calls_changed", "text_lost", "choices_merged"),
            _several,
            _judge_several,
        ),
        Check("C27", "ids of calls come back as they were given", "MUST", "seat", ("ids_changed",), _ids, _judge_ids),
    ]
