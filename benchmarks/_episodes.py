"""Episodes to measure with: recorded with scripted seats, as long as asked; and the peer's work made from them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from replaykit import engine, record
from replaykit.engine import pins
from replaykit.engine.protocol import Scenario, SeatModels
from replaykit.fleet import Fleet
from replaykit.seating import Seating
from replaykit.seats import ReplyCall, SeatReply
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor

SAMPLE = ("airline/0-8", "retail/0-10")
HERE = Path(__file__).parent


class Script:
    """The three seats: so many exchanges of small talk, the reference actions, a farewell."""

    def __init__(self, scenario: Scenario, small_talk: int) -> None:
        self._actions, self._talk = scenario.reference_actions, small_talk
        self._learner = self._customer = 0

    def ask(self, request: Any, on_exchange: Any) -> SeatReply:
        """The next line."""
        if request.seat == "judge":
            return SeatReply(content='{"results": []}', finish_reason="stop")
        if request.seat == "customer":
            self._customer += 1
            done = self._customer > self._talk + 1
            return SeatReply(
                content="Thank you. ###STOP###" if done else f"And what about point {self._customer}?",
                finish_reason="stop",
            )
        self._learner += 1
        place = self._learner - 1 - self._talk
        if 0 <= place < len(self._actions):
            action = self._actions[place]
            call = ReplyCall(f"call_{place}", action["name"], json.dumps(action["arguments"]))
            return SeatReply(tool_calls=(call,), finish_reason="tool_calls")
        return SeatReply(content=f"Could you tell me more about point {self._learner}, please?", finish_reason="stop")


def recorded(folder: Path, fleet: Fleet, panel_id: str, small_talk: int = 0) -> Path:
    """A cassette of a panel's reference solution behind so many exchanges of small talk."""
    runtime, panel = engine.load(), fleet.panel(panel_id)
    script = Script(runtime.scenarios(panel.domain)[panel.scenario], small_talk)
    identity = {"transport": "scripted", "model": "scripted"}
    roster = {"customer": identity, "judge": identity, "digest": "0" * 64}
    head = {
        "arm": {"name": "scripted", "learner": identity, "digest": "0" * 64},
        "roster": roster,
        "controls": "benchmark",
    }
    models = SeatModels(*[(pins.DEFAULT_MODEL, dict(pins.DEFAULT_ARGUMENTS)) for _ in range(3)])
    seats = Seating(dict.fromkeys(("learner", "customer", "judge"), script), models, {**head, "transports": {}})
    path, redactor = folder / f"{panel_id.replace('/', '-')}-{small_talk}.cassette.jsonl", Redactor(())
    with Journal.create(path, record.header(runtime, fleet, panel, seats, 300), redactor) as journal:
        record.play(runtime, panel, seats, journal, 300, redactor)
    return path


def native(cassettes: list[Any]) -> dict | str:
    """What tau2 alone takes for the same episodes (see `_native`); a sentence where it cannot be run."""
    if engine.load().found.kind != "embedded":
        return "the peer is written for the packaged tau2 of the extra 'embedded'"
    episodes = [
        {
            "domain": c.panel.partition("/")[0],
            "task": _task(c.panel),
            "replies": [_reply(r.outcome) for r in c.requests if r.outcome],
        }
        for c in cassettes
    ]
    done = subprocess.run(
        [sys.executable, str(HERE / "_native.py")],
        input=json.dumps({"episodes": episodes}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return f"tau2 alone did not run: {(done.stderr.strip().splitlines() or ['no message'])[-1][:200]}"
    return json.loads(done.stdout.strip().splitlines()[-1])


def _reply(reply: SeatReply) -> dict:
    return {"content": reply.content, "tool_calls": [c.to_dict() for c in reply.tool_calls] or None}


def _task(panel: str) -> dict:
    domain, _, scenario = panel.partition("/")
    name, package = pins.DATA_DISTRIBUTIONS[domain]
    path = Path(str(metadata.distribution(name).locate_file(f"{package}/data/tau2/domains/{domain}/tasks.json")))
    return next(t for t in json.loads(path.read_text(encoding="utf-8")) if t["id"] == scenario)
