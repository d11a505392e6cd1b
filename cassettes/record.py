"""Record the committed cassettes anew: ``python cassettes/record.py [FOLDER]``.

Every episode runs on labelled controls at the loopback provider. The set covers both domains and both control sets,
with and without the judge, changed and unchanged databases, transfers, episodes that end in tool errors and episodes
that end unusable.
"""

from __future__ import annotations

import sys
from pathlib import Path

from replaykit import engine, record, seating
from replaykit.controls import identities
from replaykit.controls.server import ControlProvider
from replaykit.store import fleet_file
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor
from replaykit.transports.sender import Sender

SEED = 300
CONTROLLED = {
    "one-exchange": ("airline/0", "airline/41", "retail/2", "retail/34"),
    "reference": ("airline/7", "airline/13", "airline/23", "retail/2", "retail/10", "retail/37", "retail/59"),
}
HELLO, STOP = {"content": "Hello, I need help with a request."}, {"content": "Thank you. ###STOP###"}


def call(name: str, arguments: str, call_id: str = "call_0") -> dict:
    """A reply with one tool call; ``arguments`` is raw text."""
    return {"tool_calls": [{"id": call_id, "name": name, "arguments": arguments}]}


# name -> panel, learner's replies, customer's replies, judge's replies; the last reply of a seat repeats
SCRIPTED = {
    "tool-errors": ("airline/4", [call("get_user_details", '{"user_id": "nobody_0000"}')], [HELLO, STOP], ["{}"]),
    "empty-reply": ("retail/5", [{"content": "One moment, please."}, {"content": ""}], [HELLO, {"content": "Yes?"}], ["{}"]),
    "cut-at-the-limit": ("retail/24", [{"content": "Let me look at your", "finish_reason": "length"}], [HELLO], ["{}"]),
    "broken-arguments": ("airline/19", [call("get_user_details", '{"user_id": ')], [HELLO], ["{}"]),
    "silent-customer": ("airline/28", [{"content": "How can I help?"}], [HELLO, {"content": "  "}], ["{}"]),
    "fenced-judge": ("retail/3", [{"content": "All done."}], [HELLO, STOP], ['```json\n{"results": []}\n```']),
}  # fmt: skip


def hosts(name: str) -> dict[str, identities.Identity]:
    """The three scripted controls of an episode."""
    _, learner, customer, judge = SCRIPTED[name]
    replies = {"learner": learner, "customer": customer, "judge": [{"content": text} for text in judge]}
    return {seat: identities.scripted(seat, script, name) for seat, script in replies.items()}


def main(folder: Path) -> None:
    """Record all of them below a folder."""
    runtime, fleet = engine.load(), fleet_file.read()
    with ControlProvider(keep_bytes=False) as provider, Sender() as sender:
        for kind, panels in CONTROLLED.items():
            for panel_id in panels:
                panel = fleet.panel(panel_id)
                scenario = runtime.scenarios(panel.domain)[panel.scenario]
                case = f"{kind}-{panel.domain}-{panel.scenario}"
                play(folder, runtime, fleet, panel, seating.from_controls(kind, scenario, case, provider, sender))
        for name, (panel_id, *_) in SCRIPTED.items():
            play(folder, runtime, fleet, fleet.panel(panel_id), seating.from_identities(name, hosts(name), name, provider, sender))


def play(folder: Path, runtime: object, fleet: object, panel: object, seated: seating.Seating) -> None:
    """Record one episode."""
    path = folder / panel.domain / f"{panel.scenario}-{seated.arm_name}-s{SEED}.cassette.jsonl"
    redactor = Redactor(seated.secrets)
    with Journal.create(path, record.header(runtime, fleet, panel, seated, SEED), redactor) as journal:
        result = record.play(runtime, panel, seated, journal, SEED, redactor)
    print(f"{path}: {result.termination}, reward {result.reward}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
