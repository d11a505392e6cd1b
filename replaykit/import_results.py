"""Import tau2's results files: every simulation is played again on its recorded replies and becomes a cassette.

Learner and customer answer with what was recorded; tau2 itself builds the requests, executes the tools and evaluates.
So native requests, tool results, database, policy states and verdicts are *derived* by the engine in use, and the
cassette's header says so; what the file did not hold is unknown and stays so.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from replaykit import engine, policy_record, record
from replaykit.arm import arm_header
from replaykit.budget import Budget, Ledger
from replaykit.engine import pins, results_form
from replaykit.engine.protocol import SeatModels
from replaykit.engine.tau2_engine import Tau2Engine
from replaykit.episode import Diagnostic, EpisodeResult
from replaykit.errors import ReplaykitError, UsageError
from replaykit.fleet import Fleet, Panel
from replaykit.fleet_build import trial_seed
from replaykit.gateway import Gateway
from replaykit.interchange import findings, tau2_results
from replaykit.interchange.tau2_results import ResultsFile, Simulation
from replaykit.offline import offline
from replaykit.seats import SEATS, NotRecorded, SeatReply, TransportRequest, WireExchange
from replaykit.settings import OPEN
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor

DERIVED = {
    "native_requests": "built by this engine from the recorded replies",
    "tool_results": "recomputed by this engine",
    "database": "recomputed by this engine",
    "policy_states": "recomputed from the derived trajectory",
    "verdicts": "evaluated by this engine; what the file said is kept in the footer as recorded",
}
_REBUILT = "rebuilt from the recorded checks; the text of the real reply is unknown"
_UNKNOWN = ["transports", "wire", "token limits", "retries", "budget"]


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one simulation.

    Attributes:
        index, id: Its place and name in the file.
        panel: e.g. ``airline/0``; None when it is none of ours.
        path: Its cassette, or None.
        result: The derived result, or None.
        reason: Why it was not imported, or None.
    """

    index: int
    id: str
    panel: str | None = None
    path: Path | None = None
    result: EpisodeResult | None = None
    reason: str | None = None

    @property
    def findings(self) -> list[Diagnostic]:
        """What the file says otherwise than the engine."""
        return [d for d in self.result.diagnostics if d.name.startswith("import.")] if self.result else []

    def to_dict(self) -> dict:
        """Plain data."""
        data: dict[str, Any] = {
            "index": self.index,
            "id": self.id,
            "panel": self.panel,
            "path": str(self.path) if self.path else None,
        }
        if self.result is None:
            return data | {"status": "not imported", "reason": self.reason}
        r = self.result
        match = ((r.reward_info or {}).get("db") or {}).get("match")
        named = {"termination": r.termination, "reward": r.reward, "final_db_hash": r.final_db_hash, "db_match": match}
        return data | {"status": "imported", **named, "findings": [d.to_dict() for d in self.findings]}


class RecordedReplies:
    """Answers as a results file does: learner and customer in the order of the messages, the judge where it is known.

    Args:
        simulation: What was recorded.
        judge: The judge's reply, or None: unknown.
    """

    def __init__(self, simulation: Simulation, judge: SeatReply | None) -> None:
        self._replies = list(tau2_results.seat_replies(simulation.messages))
        self._termination, self._judge = simulation.termination, judge
        self.used = 0
        self.judge_asked = False

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """The recorded reply.

        Raises:
            NotRecorded: there is none; the run ended here, or went another way than the engine goes.
        """
        if request.seat == "judge":
            self.judge_asked = True
            if self._judge is None:
                raise NotRecorded(None)
            return self._judge
        if self.used == len(self._replies):
            raise NotRecorded(self._termination)
        _, seat, reply = self._replies[self.used]
        if seat != request.seat:
            raise NotRecorded("unexpected_error")
        self.used += 1
        return reply


class Importer:
    """Imports the simulations of one results file.

    Args:
        file: The file, read.
        out: Folder for the cassettes.
        zstd: Whether to compress them.

    Raises:
        UsageError: the file's domain is none of the fleet's.
    """

    def __init__(self, file: ResultsFile, fleet: Fleet, out: Path, zstd: bool) -> None:
        self.file, self.fleet, self.out = file, fleet, out
        self._suffix = ".cassette.jsonl.zst" if zstd else ".cassette.jsonl"
        self._domain = file.facts.domain
        if self._domain not in pins.DOMAINS:
            raise UsageError(
                f"{file.path} is a run of the domain {self._domain!r}: use one of {', '.join(pins.DOMAINS)}"
            )
        self._engine: Tau2Engine = engine.load()
        self._redactor = Redactor()
        self._common = [
            *findings.of_text("policy", file.facts.policy, self._engine.policy(self._domain)),
            *findings.of_text("guidelines", file.facts.guidelines, results_form.guidelines(self._engine)),
        ]
        self._taken: set[Path] = set()

    def one(self, index: int) -> Imported:
        """Import one simulation; one that cannot be does not stop the others."""
        try:
            simulation = self.file.simulation(index)
        except UsageError as error:
            return Imported(index, "", reason=str(error))
        name = f"{self._domain}/{simulation.task_id}"
        if simulation.task_id not in self._engine.scenarios(self._domain):
            return Imported(
                index, simulation.id, reason=f"there is no panel {name!r} in tau2 {pins.VERSION}'s base scenarios"
            )
        panel = self.fleet.panel(name)
        path = self._path(panel, simulation)
        try:
            return Imported(index, simulation.id, name, path, self._play(panel, simulation, path))
        except ReplaykitError as error:
            return Imported(index, simulation.id, name, reason=str(error))

    def _path(self, panel: Panel, simulation: Simulation) -> Path:
        trial = "" if simulation.trial is None else f"-t{simulation.trial}"
        stem = f"{panel.scenario}-{_slug(self.file)}-s{simulation.seed}{trial}"
        path = self.out / panel.domain / f"{stem}{self._suffix}"
        if path in self._taken:
            path = path.with_name(f"{stem}-n{simulation.index}{self._suffix}")
        self._taken.add(path)
        return path

    def _play(self, panel: Panel, simulation: Simulation, path: Path) -> EpisodeResult:
        judge, task_findings = self._task(panel, simulation)
        source = RecordedReplies(simulation, judge)
        with Journal.create(path, self._header(panel, simulation, judge), self._redactor) as journal:
            try:
                keeping = record.Keeping(journal)
                result = self._run(panel, simulation, source, keeping)
                found = [*result.diagnostics, *self._findings(panel, simulation, result, source, judge, task_findings)]
                result = replace(result, diagnostics=found)
                self._close(panel, simulation, journal, keeping, result)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()  # made here a moment ago; half an import is no recording
                raise
        return result

    def _run(
        self, panel: Panel, simulation: Simulation, source: RecordedReplies, keeping: record.Keeping
    ) -> EpisodeResult:
        facts = self.file.facts
        ledger = Ledger(Budget(requests=len(simulation.messages) + 2), lambda: 0.0)
        cleaned = record.CleanReplies(source, self._redactor, lambda request: None)
        gateway = Gateway(dict.fromkeys(SEATS, cleaned), keeping, ledger, OPEN, lambda: 0.0)
        models = SeatModels(_model(facts.learner), _model(facts.customer), ("unknown", {}))
        with offline():
            result = self._engine.run(
                panel.domain, panel.scenario, simulation.seed, models, gateway.ask, (facts.max_steps, facts.max_errors)
            )
        return replace(result, diagnostics=[*result.diagnostics, *gateway.diagnostics])

    def _task(self, panel: Panel, simulation: Simulation) -> tuple[SeatReply | None, list[Diagnostic]]:
        """The judge's reply as far as it is known, and whether the task is the engine's."""
        raw = self.file.tasks.get(simulation.task_id)
        if raw is None:
            return None, [
                Diagnostic("import.task_unknown", "the file does not hold the task, so it cannot be compared")
            ]
        try:
            given = results_form.given_task(self._engine, panel.domain, raw)
        except ValueError as error:
            return None, [
                Diagnostic("import.task_unknown", f"the file's task cannot be read: {str(error).splitlines()[0]}")
            ]
        ours = results_form.task(self._engine, panel.domain, panel.scenario)
        asserted = [(task["evaluation_criteria"] or {}).get("nl_assertions") for task in (given, ours)]
        judge = tau2_results.judge_reply(simulation, raw) if asserted[0] == asserted[1] else None
        return judge, list(findings.of_task(given, ours))

    def _findings(
        self,
        panel: Panel,
        simulation: Simulation,
        result: EpisodeResult,
        source: RecordedReplies,
        judge: SeatReply | None,
        of_task: list[Diagnostic],
    ) -> list[Diagnostic]:
        found = [*self._common, *of_task]
        if source.judge_asked and judge is not None:
            found.append(Diagnostic("import.judge_reply_rebuilt", _REBUILT))
        found += findings.of_messages(simulation, result, self._engine.write_tools(panel.domain))
        return [*found, *findings.of_end(simulation, result)]

    def _close(
        self, panel: Panel, simulation: Simulation, journal: Journal, keeping: record.Keeping, result: EpisodeResult
    ) -> None:
        final = policy_record.final(self._engine, panel, result)
        for state in final["turns"][:-1]:
            journal.state(state["turn"], state["digest"])
        recorded = {"termination": simulation.termination, "reward_info": simulation.reward_info, **simulation.about}
        journal.close(
            {"result": result.to_dict(), "policy_states": final, "usage": keeping.tally.seats, "recorded": recorded}
        )

    def _header(self, panel: Panel, simulation: Simulation, judge: SeatReply | None) -> dict:
        facts = self.file.facts
        unknown_judge = {"transport": "unknown", "model": "unknown", "arguments": {}}
        seats = arm_header(_slug(self.file), facts.learner.identity(), facts.customer.identity(), unknown_judge)
        reply = _REBUILT if judge is not None else "unknown, where tau2 asks the judge"
        origin = {
            "kind": "tau2-results",
            "file": self.file.path.name,
            "file_digest": self.file.digest,
            "index": simulation.index,
            "id": simulation.id,
        }
        return {
            "panel": panel.id,
            "fleet_digest": self.fleet.digest,
            "engine": self._engine.identity.to_dict(),
            "settings": OPEN.to_dict(),
            "budget": None,
            **seats,
            "controls": None,
            "seeds": _seeds(facts.case_seed, simulation),
            "limits": {"steps": facts.max_steps, "errors": facts.max_errors},
            "imported": {**origin, "revision": facts.revision},
            "derived": {**DERIVED, "judge_reply": reply},
            "unknown": _UNKNOWN,
            "created_by": record.created_by(),
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }


def open_file(path: Path, out: Path, fleet: Fleet, zstd: bool = False) -> Importer:
    """Read a results file for import.

    Raises:
        UsageError: it cannot be read, holds no simulation, or none of its runs can be ours.
    """
    file = tau2_results.read(path)
    if not file.raw_simulations:
        raise UsageError(f"{path} is a results file without simulations: there is nothing to import")
    return Importer(file, fleet, out, zstd)


def run(importer: Importer, watch: Any) -> list[Imported]:
    """Import every simulation of a file, in the file's order.

    Args:
        watch: Told when a simulation is done (`step(errors=bool)`).
    """
    done = []
    for index in range(len(importer.file.raw_simulations)):
        done.append(importer.one(index))
        watch.step(errors=done[-1].reason is not None)
    return done


def _model(participant: tau2_results.Participant) -> tuple[str, dict]:
    return participant.model or "unknown", dict(participant.arguments)


def _slug(file: ResultsFile) -> str:
    learner = file.facts.learner
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{learner.implementation}-{learner.model or 'unknown'}").strip("-._")
    return text[:63] or "unknown"


def _seeds(case_seed: int | None, simulation: Simulation) -> dict:
    """The case seed where it gives the trial's seed; later trials of a run have no case seed of their own."""
    is_first = case_seed is not None and simulation.seed == trial_seed(case_seed)
    return {
        "case": case_seed if is_first else simulation.seed,
        "trial": simulation.seed,
        "run": case_seed,
        "index": simulation.trial,
    }
