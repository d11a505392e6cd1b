"""Both engines: one code path, with the corrections where the packaged 0.2 line needs them."""

from __future__ import annotations

import gc
import hashlib
import json
import sys
import threading
from collections.abc import Iterable
from functools import cached_property
from importlib import metadata
from typing import Any

from replaykit import canonical, database_rows
from replaykit.engine import corrections, data, evaluate, gold, iteration, native, pins, refusal, slim
from replaykit.engine.databases import Databases, Touched
from replaykit.engine.locate import Found
from replaykit.engine.protocol import EngineIdentity, Scenario, SeatModels
from replaykit.engine.run import Ended, Participants
from replaykit.engine.seam import Ask, Seam
from replaykit.engine.snapshot import row_text
from replaykit.episode import Diagnostic, EpisodeResult, TurnLost
from replaykit.errors import UsageError


class Domain:
    """One domain of one engine: its files, toolkit, schemas and scenarios, built once."""

    def __init__(self, tau2: native.Native, found: Found, name: str) -> None:
        self.name, self.native = name, tau2
        self.files = data.load(found, name)
        toolkit = (
            corrections.retail_tools(tau2)
            if found.kind == "embedded" and name == "retail"
            else native.tool_class(tau2, name)
        )
        shared_iteration = iteration.only_reads(native.tool_modules(tau2, name))
        self.databases = Databases(native.database_class(tau2, name), self.files.db_text, shared_iteration)
        self.toolkit = self.databases.hashing(toolkit)
        self.tasks = {t["id"]: tau2.tasks.Task.model_validate(t) for t in self.files.tasks}
        self.scenarios = {t["id"]: _scenario(name, t, self.tasks[t["id"]]) for t in self.files.tasks}
        self.references: dict[str, tuple[str, list[dict]]] = {}

    def environment(self, solo_mode: bool = False, **_: Any) -> Any:
        """A fresh environment on an untouched database."""
        return self.native.environment.Environment(self.name, self.files.policy, self.toolkit(self.databases.view()))

    @cached_property
    def tools(self) -> list:
        """tau2's tool objects; their schemas do not depend on a database."""
        return self.environment().get_tools()

    @cached_property
    def schemas(self) -> list[dict]:
        """Tool schemas as sent."""
        return [t.openai_schema for t in self.tools]

    @cached_property
    def write_tools(self) -> frozenset[str]:
        """Names of the tools of type WRITE."""
        toolkit = self.environment().tools
        write = self.native.toolkit.ToolType.WRITE
        return frozenset(n for n in toolkit.tools if toolkit.tool_type(n) == write)


def _scenario(domain: str, raw: dict, task: Any) -> Scenario:
    criteria = task.evaluation_criteria
    actions = tuple(
        {"name": a.name, "arguments": a.arguments, "requestor": a.requestor, "compare_args": a.compare_args}
        for a in criteria.actions or []
    )
    return Scenario(
        domain,
        task.id,
        tuple(b.value for b in criteria.reward_basis),
        tuple(criteria.nl_assertions or ()),
        tuple(criteria.communicate_info or ()),
        actions,
        canonical.digest(raw),
    )


class Tau2Engine:
    """A tau2 runtime (see `protocol.Engine`). Safe to use from several threads.

    Args:
        found: Which tau2 to load.
    """

    def __init__(self, found: Found) -> None:
        self.found = found
        self._native = native.load(found)
        self._participants = Participants(self._native, data.guidelines(found))
        self._domains: dict[str, Domain] = {}
        self._lock = threading.RLock()

    def domain(self, name: str) -> Domain:
        """A domain, loaded on first use.

        Raises:
            UsageError: no such domain.
            EngineNotReady: its data is missing or wrong.
        """
        if name not in pins.DOMAINS:
            raise UsageError(f"there is no domain {name!r}: use one of {', '.join(pins.DOMAINS)}")
        with self._lock:
            if name not in self._domains:
                self._domains[name] = Domain(self._native, self.found, name)
            return self._domains[name]

    def scenarios(self, domain: str) -> dict[str, Scenario]:
        """Base scenarios by id, in file order."""
        return self.domain(domain).scenarios

    def policy(self, domain: str) -> str:
        """The policy text."""
        return self.domain(domain).files.policy

    def tool_schemas(self, domain: str) -> list[dict]:
        """The learner's tool schemas, in the order sent."""
        return self.domain(domain).schemas

    def write_tools(self, domain: str) -> frozenset[str]:
        """Names of the tools of type WRITE."""
        return self.domain(domain).write_tools

    def db_hash(self, domain: str) -> str:
        """tau2's hash of the untouched database."""
        return self.domain(domain).environment().get_db_hash()

    def prepare(self, domains: Iterable[str] = pins.DOMAINS) -> None:
        """Do once what every episode of these domains needs: before workers are forked, or a long run begins.

        What is loaded by then lives as long as the process, so the cyclic collector is told to leave it alone.
        """
        for name in domains:
            place = self.domain(name)
            place.databases.prepare()
            _ = place.schemas, place.write_tools
        gc.collect()
        gc.freeze()

    def check_bases(self) -> None:
        """Prove at the end of a run that no tool has written into a base that episodes share.

        Raises:
            InternalError: one has, so the run's results are void.
        """
        for place in list(self._domains.values()):
            place.databases.check_base()

    def verify_hashes(self) -> None:
        """From now on compute tau2's own hash beside every database hash; a difference is an `InternalError`."""
        for name in pins.DOMAINS:
            self.domain(name).databases.verify = True

    @cached_property
    def identity(self) -> EngineIdentity:
        """What cassettes and certificates say of this engine."""
        found = self.found
        digests = {
            k: v for k, v in pins.DATA_SHA256.items() if k.partition("/")[0] in (*pins.DOMAINS, "user_simulator")
        }
        active = corrections.NAMES if found.kind == "embedded" else ()
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        return EngineIdentity(
            found.kind,
            found.distribution,
            found.version,
            found.revision,
            self._source_digest(),
            digests,
            active,
            python,
            {"pydantic": metadata.version("pydantic")},
        )

    def _source_digest(self) -> str:
        """Over the file of every tau2 module that an episode imports, by name."""
        digest = hashlib.sha256()
        for name, place in sorted(self._native.sources.items()):
            with open(place, "rb") as file:
                digest.update(f"{name}:{hashlib.sha256(file.read()).hexdigest()}\n".encode())
        return digest.hexdigest()

    def reference_outcome(self, domain: str, scenario_id: str) -> tuple[str, list[dict]]:
        """Final database hash of the reference solution, and each action's outcome. Computed once a process."""
        known = self.domain(domain)
        if scenario_id not in known.references:
            with slim.quiet():
                known.references[scenario_id] = _play_reference(known, self._task(known, scenario_id))
        return known.references[scenario_id]

    def _task(self, domain: Domain, scenario_id: str) -> Any:
        try:
            return domain.tasks[scenario_id]
        except KeyError:
            raise UsageError(f"there is no scenario {scenario_id!r} in {domain.name}") from None

    def run(
        self,
        domain: str,
        scenario_id: str,
        seed: int,
        models: SeatModels,
        ask: Ask,
        limits: tuple[int, int] | None = None,
    ) -> EpisodeResult:
        """Run one episode and evaluate it (see `protocol.Engine.run`)."""
        place = self.domain(domain)
        task = self._task(place, scenario_id)
        seam = Seam(ask, self._native.messages, place.schemas)
        with slim.quiet(), refusal.refused(self._native.model_calls):
            environment = place.environment()
            initial_hash = environment.get_db_hash()
            ended = self._participants.play(
                task, environment, place.tools, seed, models, seam, limits or (pins.MAX_STEPS, pins.MAX_ERRORS)
            )
            verdict, lost = self._verdict(place, task, ended, seam, models)
            final_hash = environment.get_db_hash()
            rows = place.databases.touched(environment.tools.db)
        return self._result(place, scenario_id, seed, ended, verdict, lost, initial_hash, final_hash, rows, seam)

    def _verdict(
        self, place: Domain, task: Any, ended: Ended, seam: Seam, models: SeatModels
    ) -> tuple[evaluate.Verdict, Any]:
        if ended.termination not in evaluate.NORMAL_ENDS:
            return evaluate.premature(ended.termination), ended.lost
        state = ended.trajectory
        if self.found.kind == "embedded":
            state = corrections.mutating_only(self._native, state, place.write_tools)
        try:
            environments = self._environments(place, task)
            verdict = evaluate.evaluate(
                self._native, task, ended.trajectory, environments, state, seam.generate_for("judge"), models.judge
            )
        except TurnLost as end:
            return evaluate.premature(end.turn.termination or ended.termination), end.turn
        return verdict, verdict.lost

    def _environments(self, place: Domain, task: Any) -> Any:
        """What the evaluator makes its environments with; the reference's end is known unless hashes are verified."""
        if place.databases.verify or task.initial_state is not None:
            return place.environment
        gold_hash = self.reference_outcome(place.name, task.id)[0]
        return gold.environments(
            self._native.environment.Environment,
            place.environment,
            gold_hash,
            len(task.evaluation_criteria.actions or ()),
        )

    def _result(
        self,
        place: Domain,
        scenario_id: str,
        seed: int,
        ended: Ended,
        verdict: evaluate.Verdict,
        lost: Any,
        initial: str,
        final: str,
        rows: Touched,
        seam: Seam,
    ) -> EpisodeResult:
        reference = self.reference_outcome(place.name, scenario_id)[1]
        diagnostics = _diagnostics(place.scenarios[scenario_id], reference, verdict, seam)
        unknown = lost is not None and lost.termination in (None, "infrastructure_error", "unexpected_error")
        return EpisodeResult(
            trajectory=[plain_message(m) for m in ended.trajectory],
            termination=(lost and lost.termination) or ended.termination,
            steps=ended.steps,
            errors=ended.errors,
            initial_db_hash=initial,
            final_db_hash=final,
            reward=None if unknown else verdict.reward,
            reward_info=verdict.info,
            learner_state=[
                plain_message(m) for m in (*ended.learner_state.system_messages, *ended.learner_state.messages)
            ],
            customer_state=[
                plain_message(m) for m in (*ended.customer_state.system_messages, *ended.customer_state.messages)
            ],
            reference_actions=reference,
            lost_turn=lost,
            seed=seed,
            diagnostics=diagnostics,
            db_changes=plain_rows(rows),
        )


def plain_rows(touched: Touched) -> dict:
    """Touched rows as JSON data with sorted keys, just as tau2 hashes them (see `EpisodeResult.db_changes`)."""

    def plain(row: dict | None) -> Any:
        return json.loads(row_text(row))

    return {
        table: {key: database_rows.change(*map(plain, pair)) for key, pair in rows.items()}
        for table, rows in touched.items()
    }


def plain_message(message: Any) -> dict:
    """One normalised message (see `replaykit.episode`)."""
    if message.role == "tool":
        return {
            "role": "tool",
            "id": message.id,
            "content": message.content,
            "requestor": message.requestor,
            "error": message.error,
        }
    if message.role == "system":
        return {"role": "system", "content": message.content}
    calls = message.tool_calls
    plain = (
        None
        if calls is None
        else [{"id": c.id, "name": c.name, "arguments": c.arguments, "requestor": c.requestor} for c in calls]
    )
    return {"role": message.role, "content": message.content, "tool_calls": plain}


def _play_reference(domain: Domain, task: Any) -> tuple[str, list[dict]]:
    environment, outcomes = domain.environment(), []
    for action in task.evaluation_criteria.actions or []:
        outcome = {
            "name": action.name,
            "arguments": action.arguments,
            "requestor": action.requestor,
            "outcome": "ok",
            "error": None,
        }
        try:
            environment.make_tool_call(tool_name=action.name, requestor=action.requestor, **action.arguments)
        except Exception as error:  # tau2 swallows whatever a reference action raises; here it is kept
            outcome |= {"outcome": "raised", "error": str(error)}
        outcomes.append(outcome)
    return environment.get_db_hash(), outcomes


def _diagnostics(scenario: Scenario, reference: list[dict], verdict: evaluate.Verdict, seam: Seam) -> list[Diagnostic]:
    found = [
        Diagnostic("reference.action_raised", {"index": i, "name": a["name"], "error": a["error"]})
        for i, a in enumerate(reference)
        if a["outcome"] == "raised"
    ]
    found += verdict.diagnostics
    assertions = (verdict.info or {}).get("assertions")
    if assertions is not None and seam.judge_replies:
        given, wanted = len(assertions), len(scenario.assertions)
        if given == 0 and verdict.reward is not None:
            found.append(Diagnostic("judge.all_true_default", {"assertions": wanted}))
        elif 0 < given < wanted:
            found.append(Diagnostic("judge.partial_results", {"assertions": wanted, "results": given}))
    if any(d.name.startswith("judge.") for d in found) and seam.judge_replies:
        found.append(Diagnostic("judge.raw_reply", seam.judge_replies[-1].content))
    return found
