"""Run scripted episodes on the engine in use and compare everything with what upstream tau2 did.

A facts file holds cases: a panel, a script of replies by seat (the last one repeats), and upstream's result. Where
upstream let an exception escape (``raised``), the case is an unusable turn or an unusable judge reply: everything
before it must agree, and the turn rules decide how it ends here.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.budget import Budget, Ledger
from replaykit.engine import pins
from replaykit.engine.protocol import Engine, SeatModels
from replaykit.episode import EpisodeResult
from replaykit.errors import UsageError
from replaykit.fleet_build import trial_seed
from replaykit.gateway import Gateway
from replaykit.seats import ReplyCall, SeatReply, SeatRequest, TransportRequest, WireExchange

MAX_FACTS_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case compared.

    Attributes:
        name: ``<panel> <kind> #<position>``.
        differences: ``{"what", "expected", "actual"}`` each; empty when equal.
        environment: Why the case cannot be compared on this Python, or None.
    """

    name: str
    differences: list[dict] = field(default_factory=list)
    environment: str | None = None


def read(path: Path) -> dict:
    """A facts document.

    Raises:
        UsageError: missing, not JSON, or not a facts file.
    """
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.open(path) as file:
                raw = file.read(MAX_FACTS_BYTES + 1)
        if len(raw) > MAX_FACTS_BYTES:
            raise UsageError(f"{path} is larger than {MAX_FACTS_BYTES} bytes: it is no facts file")
        document = json.loads(raw)
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as a facts file: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("cases"), list):
        raise UsageError(f"{path} is not a facts file: it has no list of cases")
    return document


def run(document: dict, engine: Engine, on_case: Callable[[CaseResult], None] = lambda case: None) -> list[CaseResult]:
    """Run every case and compare.

    Args:
        on_case: Told each result as it comes.
    """
    settings = document.get("settings") or {}
    seed = trial_seed(settings.get("case_seed", pins.DEFAULT_CASE_SEED))
    results = []
    for position, case in enumerate(document["cases"]):
        result = _case(case, position, engine, seed)
        on_case(result)
        results.append(result)
    return results


def domain_differences(document: dict, engine: Engine) -> list[dict]:
    """Differences in what a facts file says of whole domains: database, policy, tools, write tools, scenarios."""
    found = []
    for name, facts in (document.get("domains") or {}).items():
        actual = {
            "db_hash": engine.db_hash(name),
            "policy_sha256": canonical.sha256(engine.policy(name).encode()),
            "tasks": list(engine.scenarios(name)),
            "tools": [t["function"]["name"] for t in engine.tool_schemas(name)],
            "tools_sha256": canonical.digest(engine.tool_schemas(name)),
            "write_tools": sorted(engine.write_tools(name)),
        }
        found += [_difference(f"{name}/{k}", facts[k], actual[k]) for k in actual if k in facts and facts[k] != actual[k]]
    return found


class Script:
    """Replies of one seat from a list; the last one repeats."""

    def __init__(self, replies: list[dict]) -> None:
        self._replies, self._next = [_reply(r) for r in replies], 0

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """The next reply."""
        reply = self._replies[min(self._next, len(self._replies) - 1)]
        self._next += 1
        return reply


def _reply(raw: dict) -> SeatReply:
    calls = tuple(ReplyCall(c["id"], c["name"], c["arguments"]) for c in raw.get("tool_calls") or ())
    return SeatReply(content=raw.get("content"), tool_calls=calls, finish_reason=raw.get("finish_reason"), cost=0.0)


class _Requests:
    """Keeps what was asked, in the facts file's terms."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.native: list[SeatRequest] = []

    def request(self, request: SeatRequest) -> None:
        body = {"messages": request.messages, "tools": request.tools, "tool_choice": request.tool_choice}
        kwargs = {k: v for k, v in request.arguments.items() if k != "num_retries"}
        self.asked.append({"seat": request.seat, "sha256": canonical.digest(body), "messages": len(request.messages), "kwargs": kwargs})
        self.native.append(request)

    def exchange(self, number: int, exchange: WireExchange) -> None: ...

    def reply(self, number: int, reply: SeatReply) -> None: ...

    def failure(self, number: int, failure: object) -> None: ...

    def end(self, number: int, end: dict) -> None: ...


def _case(case: dict, position: int, engine: Engine, seed: int) -> CaseResult:
    name = f"{case.get('panel')} {case.get('kind')} #{position}"
    try:
        domain, _, scenario = case["panel"].partition("/")
        sources = {seat: Script(case["script"][seat]) for seat in ("learner", "customer", "judge")}
        expect = case["expect"]
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"case {position} is not of the facts form: {error!r} is missing or wrong") from error
    requests = _Requests()
    gateway = Gateway(sources, requests, Ledger(Budget(), lambda: 0.0))
    models = SeatModels(*[(pins.DEFAULT_MODEL, dict(pins.DEFAULT_ARGUMENTS)) for _ in range(3)])
    result = engine.run(domain, scenario, seed, models, gateway.ask)
    differences = list(_compare(expect, result, requests.asked))
    return CaseResult(name, differences, _environment(differences, requests.native) if differences else None)


def _compare(expect: dict, result: EpisodeResult, asked: list[dict]) -> Iterator[dict]:
    yield from _compare_requests(expect["requests"], asked)
    actual = {"steps": result.steps, "errors": result.errors, "initial_db_hash": result.initial_db_hash, "final_db_hash": result.final_db_hash}
    if "raised" in expect:
        yield from _compare_lost(expect, result)
    else:
        actual |= _verdicts(result)
    yield from (_difference(k, expect[k], v) for k, v in actual.items() if k in expect and canonical.digest(expect[k]) != canonical.digest(v))


def _compare_requests(expected: list[dict], asked: list[dict]) -> Iterator[dict]:
    for i, (want, got) in enumerate(zip(expected, asked, strict=False)):
        if want != {k: got[k] for k in want}:
            yield _difference(f"request {i + 1}", want, got)
    if len(expected) != len(asked):
        yield _difference("number of requests", len(expected), len(asked))


def _compare_lost(expect: dict, result: EpisodeResult) -> Iterator[dict]:
    """Where upstream raised, the turn must be lost here, or the judge unparseable."""
    judge_lost = any(d.name == "judge.unparseable" for d in result.diagnostics)
    if result.lost_turn is None and not judge_lost:
        yield _difference("unusable turn", expect["raised"], "none was found")


def _verdicts(result: EpisodeResult) -> dict[str, Any]:
    info = result.reward_info or {}
    normal = "breakdown" in info
    return {
        "termination_reason": result.termination,
        "trajectory": [_trajectory_fact(m) for m in result.trajectory],
        "reward": result.reward,
        "reward_breakdown": info["breakdown"] if normal else {},
        "db_match": info["db"]["match"] if normal and info["db"] else None,
        "action_match": [a["match"] for a in info["actions"]] if normal else [],
        "communicate_met": [c["met"] for c in info["communicate"]] if normal else [],
        "nl_met": [a["met"] for a in info["assertions"] or []] if normal else [],
    }


def _trajectory_fact(message: dict) -> dict:
    content = message["content"]
    calls = message.get("tool_calls") or []
    return {
        "role": message["role"],
        "content_sha256": None if content is None else canonical.sha256(content.encode("utf-8", "surrogatepass")),
        "error": message.get("error"),
        "tool_calls": [[c["id"], c["name"], canonical.digest(c["arguments"])] for c in calls],
    }


def _environment(differences: list[dict], asked: list[SeatRequest]) -> str | None:
    """Python 3.13 appends a suggestion to one of its error texts, which then stands in a learner request."""
    if sys.version_info < (3, 13) or not differences[0]["what"].startswith("request "):
        return None
    messages = asked[int(differences[0]["what"].split()[1]) - 1].messages
    marked = [m for m in messages if m["role"] == "tool" and "unexpected keyword argument" in (m["content"] or "") and "Did you mean" in m["content"]]
    return "Python 3.13 adds a suggestion to the error text of an unexpected keyword argument" if marked else None


def _difference(what: str, expected: Any, actual: Any) -> dict:
    return {"what": what, "expected": expected, "actual": actual}
