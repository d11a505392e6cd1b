"""Run scripted episodes on the engine in use and compare everything with what upstream tau2 did.

A facts file holds cases: a panel, a script of replies by seat (the last one repeats), and upstream's result. Where
upstream let an exception escape (``raised``), the case is an unusable turn or an unusable judge reply: everything
before it must agree, and the turn rules decide how it ends here.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.budget import Budget, Ledger
from replaykit.divergence import SUGGESTING, without_suggestion
from replaykit.engine import pins
from replaykit.engine.protocol import Engine, SeatModels
from replaykit.episode import EpisodeResult
from replaykit.errors import UsageError
from replaykit.fleet_build import trial_seed
from replaykit.gateway import Gateway
from replaykit.seats import SEATS, SeatReply, SeatRequest, TransportRequest, WireExchange
from replaykit.settings import OPEN

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
        document = json.loads(_content(path))
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read as a facts file: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("cases"), list):
        raise UsageError(f"{path} is not a facts file: it has no list of cases")
    if not document["cases"]:
        raise UsageError(f"{path} holds no case, so nothing could be compared")
    _check_whole(document, path)
    return document


def _content(path: Path) -> bytes:
    with open(path, "rb") as file:
        plain = gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == b"\x1f\x8b" else file
        raw = plain.read(MAX_FACTS_BYTES + 1)
    if len(raw) > MAX_FACTS_BYTES:
        raise UsageError(f"{path} is larger than {MAX_FACTS_BYTES} bytes: it is no facts file")
    return raw


def _check_whole(document: dict, path: Path) -> None:
    """What stands around the cases; a case is checked where it is played."""
    for name in ("settings", "domains"):
        if not isinstance(document.get(name) or {}, dict):
            raise UsageError(f"{path} is not a facts file: its {name} are no object")
    numbers = [(document.get("settings") or {}).get(name, 0) for name in ("case_seed", "max_steps", "max_errors")]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise UsageError(f"{path} is not a facts file: its settings are no numbers")
    for domain, facts in (document.get("domains") or {}).items():
        if not isinstance(facts, dict):
            raise UsageError(f"{path} is not a facts file: what it says of {domain} is no object")


def run(document: dict, engine: Engine, on_case: Callable[[CaseResult], None] = lambda case: None) -> list[CaseResult]:
    """Run every case and compare.

    Args:
        on_case: Told each result as it comes.

    Raises:
        UsageError: a case has not the form of one.
    """
    settings = document.get("settings") or {}
    seed = trial_seed(settings.get("case_seed", pins.DEFAULT_CASE_SEED))
    limits = settings.get("max_steps", pins.MAX_STEPS), settings.get("max_errors", pins.MAX_ERRORS)
    results = []
    for position, case in enumerate(document["cases"]):
        result = _checked_case(case, position, engine, seed, limits)
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
        found += [
            _difference(f"{name}/{k}", facts[k], actual[k]) for k in actual if k in facts and facts[k] != actual[k]
        ]
    return found


def not_compared(document: dict) -> list[str]:
    """Members of expectations that are not known here, so that nothing was compared with them."""
    said = {member for case in document["cases"] for member in case["expect"]}
    return sorted(said - {"requests", "raised", *_RUN_FACTS, *_VERDICT_FACTS})


class Script:
    """Replies of one seat from a list; the last one repeats."""

    def __init__(self, replies: list[dict]) -> None:
        self._replies, self._next = [_reply(r) for r in replies], 0

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """The next reply.

        Raises:
            UsageError: the script is empty.
        """
        if not self._replies:
            raise UsageError(f"the {request.seat} is asked, and its script is empty")
        reply = self._replies[min(self._next, len(self._replies) - 1)]
        self._next += 1
        return reply


def _reply(raw: dict) -> SeatReply:
    members = {name: raw.get(name) for name in ("content", "finish_reason")}
    return SeatReply.from_dict({**members, "tool_calls": raw.get("tool_calls") or (), "cost": 0.0})


class _Requests:
    """Keeps what was asked."""

    def __init__(self) -> None:
        self.native: list[SeatRequest] = []

    def request(self, request: SeatRequest) -> None:
        self.native.append(request)

    def exchange(self, number: int, exchange: WireExchange) -> None: ...

    def reply(self, number: int, reply: SeatReply) -> None: ...

    def failure(self, number: int, failure: object) -> None: ...

    def end(self, number: int, end: dict) -> None: ...


def _checked_case(case: Any, position: int, engine: Engine, seed: int, limits: tuple[int, int]) -> CaseResult:
    try:
        name = f"{case.get('panel')} {case.get('kind')} #{position}"
        sources = {seat: Script(case["script"][seat]) for seat in SEATS}
        domain, _, scenario = case["panel"].partition("/")
        expect = case["expect"]
        _check_expectation(expect)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"case {position} is not of the facts form: {error!r} is missing or wrong") from error
    result, native = _played(engine, (domain, scenario), sources, seed, limits)
    differences = list(_compare(expect, result, native))
    alone = bool(differences) and not list(_compare(expect, *_without_suggestions(result, native)))
    return CaseResult(name, differences, SUGGESTING if alone else None)


def _check_expectation(expect: Any) -> None:
    for request in expect["requests"]:
        if not request.keys() <= _REQUEST_FACTS:
            raise ValueError(f"request with {', '.join(sorted(request.keys() - _REQUEST_FACTS))}")


def _played(
    engine: Engine, panel: tuple[str, str], sources: dict[str, Script], seed: int, limits: tuple[int, int]
) -> tuple[EpisodeResult, list[SeatRequest]]:
    """The episode on the engine; upstream has no caps, so nothing is lost to one."""
    requests = _Requests()
    budget = Budget(requests=max(Budget().requests, limits[0] + 1))
    gateway = Gateway(sources, requests, Ledger(budget, lambda: 0.0), OPEN)
    models = SeatModels(*[(pins.DEFAULT_MODEL, dict(pins.DEFAULT_ARGUMENTS)) for _ in SEATS])
    return engine.run(*panel, seed, models, gateway.ask, limits), requests.native


_RUN_FACTS = ("steps", "errors", "initial_db_hash", "final_db_hash")
_VERDICT_FACTS = (
    "termination_reason", "trajectory", "reward", "reward_breakdown", "db_match", "action_match",
    "communicate_met", "nl_met",
)  # fmt: skip
_REQUEST_FACTS = {"seat", "sha256", "messages", "kwargs"}


def _request_fact(request: SeatRequest) -> dict:
    body = {"messages": request.messages, "tools": request.tools, "tool_choice": request.tool_choice}
    kwargs = {k: v for k, v in request.arguments.items() if k != "num_retries"}
    return {"seat": request.seat, "sha256": canonical.digest(body), "messages": len(request.messages), "kwargs": kwargs}


def _compare(expect: dict, result: EpisodeResult, native: list[SeatRequest]) -> Iterator[dict]:
    yield from _compare_requests(expect["requests"], [_request_fact(request) for request in native])
    actual = {name: getattr(result, name) for name in _RUN_FACTS}
    if "raised" in expect:
        yield from _compare_lost(expect, result)
    else:
        actual |= _verdicts(result)
    yield from (
        _difference(k, expect[k], v)
        for k, v in actual.items()
        if k in expect and canonical.digest(expect[k]) != canonical.digest(v)
    )


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


def _without_suggestions(result: EpisodeResult, native: list[SeatRequest]) -> tuple[EpisodeResult, list[SeatRequest]]:
    """An episode as it would have been before Python 3.13."""
    requests = [replace(request, messages=list(map(_plain, request.messages))) for request in native]
    return replace(result, trajectory=list(map(_plain, result.trajectory))), requests


def _plain(message: dict) -> dict:
    content = message["content"]
    return (
        message if message["role"] != "tool" or content is None else {**message, "content": without_suggestion(content)}
    )


def _difference(what: str, expected: Any, actual: Any) -> dict:
    return {"what": what, "expected": expected, "actual": actual}
