"""B: settings on the wire."""

from __future__ import annotations

from typing import Any

from replaykit import canonical
from replaykit.certify import reading
from replaykit.certify.check import Check
from replaykit.certify.finding import Failed
from replaykit.certify.probe import Probe, Step, hello, says, tool
from replaykit.certify.profile import Profile
from replaykit.certify.views import Seen, Views
from replaykit.controls.faults import Fault
from replaykit.controls.replies import Reply
from replaykit.seats import SEATS

SENTINELS = {"temperature": 0.25, "top_p": 0.875, "max_output_tokens": 777, "seed": 300}
FALSY = {"temperature": 0.0, "top_p": 0.0, "max_output_tokens": 16, "seed": 0}
OWN = {
    "learner": {"temperature": 0.125, "top_p": 0.5, "max_output_tokens": 111, "seed": 1},
    "customer": {"temperature": 0.25, "top_p": 0.625, "max_output_tokens": 222, "seed": 2},
    "judge": {"temperature": 0.375, "top_p": 0.75, "max_output_tokens": 333},
}
UNKNOWN = "top_k"
OTHER_MODEL = "another-model-2"


def settings_present(seen: Seen, expected: dict[str, Any], profile: Profile, code: str = "setting_missing") -> None:
    """Check that the wire carries each setting that the transport does not declare as not carried, type and value.

    Raises:
        Failed: one is missing, changed, or sent although declared not to be.
    """
    found = reading.settings(seen.only().body, profile)
    for name, value in expected.items():
        if name in profile.not_carried:
            if name in found:
                raise Failed("undeclared_setting", f"{name} is declared as not carried and was sent")
            continue
        if name not in found:
            raise Failed(code, f"{seen.step.name}: {name}")
        if not canonical.same(found[name], value):
            raise Failed("setting_changed", f"{seen.step.name}: {name} is {found[name]!r}, not {value!r}")


def members_declared(seen: Seen, profile: Profile) -> None:
    """Check that the body holds nothing beyond what was asked and what is declared.

    Raises:
        Failed: ``undeclared_key``.
    """
    extra = reading.undeclared_members(seen.only().body, profile)
    asked = None if seen.step.settings is None else set(seen.step.settings)
    sent = set(reading.settings(seen.only().body, profile))
    extra += sorted(sent - asked) if asked is not None else []
    if extra:
        raise Failed("undeclared_key", f"{seen.step.name}: {', '.join(extra)}")


def sentinel_step(seat: str, settings: dict[str, Any], name: str) -> Step:
    """A direct request with exactly these settings; the judge gets no seed."""
    own = {k: v for k, v in settings.items() if not (seat == "judge" and k == "seed")}
    return Step(name, seat, hello(seat), settings=own)


def _parallel(profile: Profile) -> list[Probe]:
    interleaved = [sentinel_step(s, OWN[s], f"in-turn-{i}-{s}") for i in (1, 2) for s in SEATS]
    together = [
        Step(f"together-{i}-{s}", s, hello(s, f"Together {i} {s}."), settings=dict(OWN[s]), group="together")
        for i in (1, 2)
        for s in SEATS
    ]
    return [Probe("seats", (*interleaved, *together))]


def _judge_parallel(views: Views) -> None:
    for seen in views.steps:
        found = reading.settings(seen.only().body, views.profile)
        expected = {k: v for k, v in OWN[seen.step.seat].items() if k not in views.profile.not_carried}
        if not canonical.same(dict(sorted(found.items())), dict(sorted(expected.items()))):
            raise Failed("settings_crossed", f"{seen.step.name}: {found} instead of {expected}")


def _retried(profile: Profile) -> list[Probe]:
    failing = Step(
        "failing",
        "learner",
        hello("learner", "First a 500."),
        tools=[tool("get_a")],
        fault=Fault("status", {"status": 500}),
        healthy=False,
    )
    return [Probe("retry", (failing, Step("after", "learner", hello("learner", "Then well."), tools=[tool("get_a")])))]


def _judge_retried(views: Views) -> None:
    for seen in views.steps:
        bodies = {e.data["request_sha256"] for e in seen.wire}
        if len(bodies) > 1:
            raise Failed("retry_body_differs", seen.step.name)
        seen.only()


def served_steps(seat: str = "learner", messages: list[dict] | None = None) -> list[Step]:
    """Requests whose replies claim another model, an empty one, none."""
    replies = [
        ("other", Reply("Served.", served_model=OTHER_MODEL)),
        ("empty", Reply("Served.", served_model="")),
        ("missing", Reply("Served.", omit=("model",))),
    ]
    return [
        Step(f"served-{name}", seat, messages or hello(seat, f"Who are you, {name}?"), fault=says(reply))
        for name, reply in replies
    ]


def served_truly(seen: Seen) -> None:
    """Check that the model named in a reply is the one the provider named, whatever was asked for.

    Raises:
        Failed: ``model_overwritten``.
    """
    claimed = {"served-other": (OTHER_MODEL,), "served-empty": ("", None), "served-missing": (None,)}[seen.step.name]
    if seen.reply is not None and seen.reply.model not in claimed:
        raise Failed(
            "model_overwritten", f"{seen.step.name}: {seen.reply.model!r} where the provider said {claimed[0]!r}"
        )
    seen.only()


def unsupported_steps(messages: list[dict]) -> list[Step]:
    """A setting no wire carries, which must be refused before sending, and its accept twin."""
    settings = {"temperature": 0.0, "max_output_tokens": 64}
    refused = Step(
        "unsupported", "learner", messages, settings=settings | {UNKNOWN: 5}, healthy=False, expect="refused"
    )
    return [refused, Step("supported", "learner", messages, settings=settings)]


def refused_or_recorded(seen: Seen, profile: Profile) -> None:
    """Check that an unknown setting is refused locally.

    Raises:
        Failed: ``silent_drop`` or ``sent_unsupported``.
    """
    if seen.wire:
        text = canonical.ordered(seen.wire[0].body).decode()
        raise Failed("sent_unsupported" if UNKNOWN in text or "topK" in text else "silent_drop", UNKNOWN)
    if seen.outcome != "capability":
        raise Failed("refusal_unclassified", seen.outcome)


def _panel_settings(views: Any) -> None:
    for seen in views.episode_requests():
        settings_present(seen, seen.step.expect, views.profile)
    for name in ("sentinel-learner", "sentinel-customer"):
        seen = views.step(name)
        settings_present(seen, seen.step.settings, views.profile)


def _panel_falsy(views: Any) -> None:
    seen = views.step("falsy")
    settings_present(seen, seen.step.settings, views.profile, "falsy_setting_missing")


def _panel_unsupported(views: Any) -> None:
    refused_or_recorded(views.step("unsupported"), views.profile)
    views.step("supported").only()
    dropped = set(views.capture["dropped_settings"])
    if dropped != set(views.profile.not_carried) & set(SENTINELS):
        raise Failed("silent_drop", f"the row names {sorted(dropped)}")


def _panel_members(views: Any) -> None:
    for seen in [*views.episode_requests(), views.step("minimal"), views.step("supported")]:
        members_declared(seen, views.profile)


def _panel_served(views: Any) -> None:
    for name in ("served-other", "served-empty", "served-missing"):
        served_truly(views.step(name))


def checks() -> list[Check]:
    """C05 to C11."""
    return [
        Check(
            "C05",
            "each setting of a panel is on the wire, with its type and value",
            "MUST",
            "panel",
            ("setting_missing", "setting_changed", "undeclared_setting"),
            judge_panel=_panel_settings,
        ),
        Check(
            "C06",
            "settings whose value is false in Python are on the wire",
            "MUST",
            "panel",
            ("falsy_setting_missing",),
            judge_panel=_panel_falsy,
        ),
        Check(
            "C07",
            "a setting that the wire cannot carry is refused or declared, never dropped in silence",
            "MUST",
            "panel",
            ("silent_drop", "sent_unsupported", "refusal_unclassified"),
            judge_panel=_panel_unsupported,
        ),
        Check(
            "C08", "nothing undeclared is on the wire", "MUST", "panel", ("undeclared_key",), judge_panel=_panel_members
        ),
        Check(
            "C09",
            "each seat is asked with its own settings, in turn and at the same time",
            "MUST",
            "seat",
            ("settings_crossed",),
            _parallel,
            _judge_parallel,
        ),
        Check(
            "C10",
            "a further attempt repeats the same bytes; the built-in transports make none",
            "MUST",
            "transport",
            ("retry_body_differs", "retried"),
            _retried,
            _judge_retried,
        ),
        Check(
            "C11",
            "the served model is reported as the provider named it",
            "MUST",
            "panel",
            ("model_overwritten",),
            judge_panel=_panel_served,
        ),
    ]
