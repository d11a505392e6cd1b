"""H: what a result means, and that everything is counted."""

from __future__ import annotations

import json
from typing import Any

from replaykit.certify.capture import Bench, Context
from replaykit.certify.check import Check
from replaykit.certify.finding import Failed, Unseen
from replaykit.certify.panels import PanelViews
from replaykit.certify.probe import Probe, Step, hello, says, with_twins
from replaykit.certify.profile import Profile
from replaykit.certify.subject import Subject
from replaykit.certify.views import Views
from replaykit.controls.replies import Reply
from replaykit.seats import SEATS

ONE = {"expectedOutcome": "It is done.", "reasoning": "scripted", "metExpectation": True}
JUDGEMENTS = {
    "empty-object": "{}",
    "missing-key": '{"verdict": true}',
    "fenced": '```json\n{"results": []}\n```',
    "empty-text": "",
    "one-of-two": json.dumps({"results": [ONE]}),
}
FORMS = {
    "empty-object": "empty_object",
    "missing-key": "no_results",
    "fenced": "no_json",
    "empty-text": "no_text",
    "one-of-two": "partial",
}
SCORES = frozenset({"reward", "rewards", "score", "scores", "pass_rate", "pass_rates", "pass^k"})
_ROWS = ("panel/0", "panel/1", "panel/2")


def judgement_form(text: str | None) -> str:
    """Which of the forms of a judge's reply a text has; an empty list is ``vacuous``."""
    if not (text or "").strip():
        return "no_text"
    try:
        value = json.loads(text or "")
    except ValueError:
        return "no_json"
    if not isinstance(value, dict) or not value:
        return "empty_object" if value == {} else "no_results"
    results = value.get("results")
    if not isinstance(results, list):
        return "no_results"
    return "partial" if results else "vacuous"


def claims_of_score(value: Any, path: str = "") -> str | None:
    """The first member that claims a reward or a score, or None."""
    if isinstance(value, dict):
        for key, part in value.items():
            if str(key).lower() in SCORES:
                return f"{path}/{key}"
            found = claims_of_score(part, f"{path}/{key}")
            if found:
                return found
    for i, part in enumerate(value if isinstance(value, list) else ()):
        found = claims_of_score(part, f"{path}/{i}")
        if found:
            return found
    return None


def _judgements(profile: Profile) -> list[Probe]:
    steps = [
        Step(f"judge-{n}", "judge", hello("judge", f"Grade {n}."), fault=says(Reply(t)), healthy=bool(t))
        for n, t in JUDGEMENTS.items()
    ]
    return [Probe("judgements", (Step("judge-vacuous", "judge", hello("judge", "Grade.")), *steps), perform=_with_rows)]


def _with_rows(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    """The steps, and the rows that the result of such a run would hold."""
    with Bench(f"{check}-{probe.name}", with_twins(probe), {}, subject, context) as bench:
        bench.ask_all()
        body = bench.capture()
        return body | {"rows": subject.layer.rows([{"id": name, "status": "PASS"} for name in _ROWS])}


def _judge_judgements(views: Views) -> None:
    for seen in views.steps:
        name = seen.step.name.removeprefix("judge-")
        seen.only()
        if seen.reply is None:
            continue
        if name in JUDGEMENTS and (seen.reply.content or "") != JUDGEMENTS[name]:
            raise Failed("judge_reply_changed", f"{name}: {seen.reply.content!r}")
        if judgement_form(seen.reply.content) != FORMS.get(name, "vacuous"):
            raise Failed("judgement_confused", name)
    place = claims_of_score(views.capture["rows"])
    if place:
        raise Failed("claims_reward", place)


def _panel_judgement(views: PanelViews) -> None:
    views.judge_diagnostic()


def _covered(profile: Profile) -> list[Probe]:
    gone = Step("gone", "learner", hello("learner", "Nobody is there."), healthy=False, expect="refused")
    return [
        Probe("rows", (Step("alive", "learner", hello("learner")),), perform=_with_rows),
        Probe("unreachable", (gone,), {"scaled": True}, perform=_unreachable),
    ]


def _unreachable(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    """The last step finds nobody; the row of what could not be asked must still be there and must not pass."""
    with Bench(f"{check}-{probe.name}", with_twins(probe), probe.options, subject, context) as bench:
        last = len(bench.steps) - 1
        for index in range(last):
            bench.ask(index)
        bench.sources["learner"] = subject.source(
            f"http://127.0.0.1:{_closed_port()}/v1", bench.canary.key, bench.sender
        )
        bench.ask(last)
        body = bench.capture()
        answered = any("reply" in r for r in body["steps"][last:])
        rows = subject.layer.rows([{"id": _ROWS[0], "status": "PASS" if answered else "NOT_EXERCISED"}])
        return body | {"rows": rows}


def _closed_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _judge_covered(views: Views) -> None:
    ids = [row["id"] for row in views.capture["rows"]]
    if views.probe.name == "unreachable":
        if ids != [_ROWS[0]] or views.capture["rows"][0]["status"] == "PASS":
            raise Failed("empty_denominator", f"nothing was asked and the rows are {views.capture['rows']}")
        if views.steps[0].wire or views.steps[0].outcome not in ("unreachable", "deadline"):
            raise Unseen("the closed port answered")
        return
    if len(set(ids)) != len(ids):
        raise Failed("panel_twice", str(ids))
    if ids != list(_ROWS):
        raise Failed("panel_missing", str(ids))


def _panel_counted(views: PanelViews) -> None:
    asked = [seen.step.seat for seen in views.episode_requests()]
    if not set(SEATS[:2]) <= set(asked):
        raise Failed("panel_missing", f"the panel asked only {sorted(set(asked))}")


def checks() -> list[Check]:
    """C49 and C50."""
    return [
        Check(
            "C49",
            "a judge's reply is kept as it came, an empty one is named, and nothing is scored",
            "MUST",
            "seat",
            ("judge_reply_changed", "judgement_confused", "claims_reward", "judge_diagnostic"),
            _judgements,
            _judge_judgements,
            _panel_judgement,
        ),
        Check(
            "C50",
            "every selected panel is counted exactly once, and what was not measured does not pass",
            "MUST",
            "panel",
            ("panel_missing", "panel_twice", "empty_denominator"),
            _covered,
            _judge_covered,
            _panel_counted,
        ),
    ]
