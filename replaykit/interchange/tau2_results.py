"""tau2's native results files, 0.2 and 1.0 lines, in one file or a folder: what a run recorded, as checked values.

Nothing is filled in here: what a file does not hold stays None.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.episode import TERMINATIONS
from replaykit.errors import UsageError
from replaykit.interchange.reading import MAX_JSON, Members, json_value, read_bytes
from replaykit.seats import ReplyCall, SeatReply

SEAT_OF = {"assistant": "learner", "user": "customer"}
_FOLDER = "simulations"


@dataclass(frozen=True, slots=True)
class Participant:
    """An agent or a user simulator as the run was configured."""

    implementation: str
    model: str | None
    arguments: dict

    def identity(self) -> dict:
        """The seat's identity in a cassette: how it was reached is not in a results file."""
        return {
            "transport": "unknown",
            "model": self.model or "unknown",
            "arguments": self.arguments,
            "implementation": self.implementation,
        }


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a results file says of the whole run.

    Attributes:
        revision: The commit the runner stood on, as it wrote it down.
        case_seed: The seed that trial seeds were drawn from, or None.
        max_steps, max_errors: The limits of an episode.
        policy, guidelines: The texts in use, or None.
    """

    domain: str
    revision: str | None
    case_seed: int | None
    max_steps: int
    max_errors: int
    learner: Participant
    customer: Participant
    policy: str | None
    guidelines: str | None


@dataclass(frozen=True, slots=True)
class Simulation:
    """One simulation as recorded.

    Attributes:
        index: Its place in the file, from 0.
        messages: As in the file.
        reward_info: As in the file, or None.
        about: Times and costs as in the file; only members that are there.
    """

    index: int
    id: str
    task_id: str
    trial: int | None
    seed: int | None
    termination: str
    messages: list[dict]
    reward_info: dict | None
    about: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ResultsFile:
    """A whole results file; simulations are checked one by one as they are taken.

    Attributes:
        digest: Hex SHA-256 over the file's bytes; of a folder, over all its files in the order of their names.
        tasks: Raw task by id.
    """

    path: Path
    digest: str
    facts: RunFacts
    tasks: dict[str, dict]
    raw_simulations: list[Any]

    def simulation(self, index: int) -> Simulation:
        """One simulation.

        Raises:
            UsageError: it cannot be read; names the member.
        """
        return _simulation(Members(self.raw_simulations[index], self.path, "simulations", index), index)


def read(path: Path) -> ResultsFile:
    """Read a results file, or a folder with ``results.json`` and ``simulations/``.

    Raises:
        UsageError: it is not one, or cannot be read; files that its index names are missing.
    """
    main = path / "results.json" if path.is_dir() else path
    data = read_bytes(main, MAX_JSON)
    whole = Members(json_value(data, main), main)
    digest = hashlib.sha256(data)
    facts = _facts(whole.inside("info"))
    simulations = whole.take("simulations", list, default=[])
    if not simulations and (main.parent / _FOLDER).is_dir():
        simulations = _folder(main.parent / _FOLDER, whole, digest)
    elif "simulations" not in whole.value:
        raise UsageError(
            f"{main} holds no simulations and has no folder {_FOLDER} beside it: not a results file of tau2"
        )
    return ResultsFile(path, digest.hexdigest(), facts, _tasks(whole), simulations)


def _folder(folder: Path, whole: Members, digest: Any) -> list:
    files = sorted(folder.glob("*.json"))
    index = whole.take("simulation_index", list, default=None)
    if index is not None:
        listed, there = {str(e.get("id")) for e in index if isinstance(e, dict)}, {f.stem for f in files}
        if listed != there:
            odd = sorted(listed ^ there)[0]
            word = "is missing" if odd in listed else "is not in the index"
            counts = f"{whole.path} lists {len(listed)}, the folder holds {len(there)}"
            raise UsageError(f"{folder}: the simulation {odd} {word} ({counts})")
    found = []
    for file in files:
        data = read_bytes(file, MAX_JSON)
        digest.update(data)
        found.append(json_value(data, file))
    return found


def _facts(info: Members) -> RunFacts:
    place = info.inside("environment_info")
    user = info.inside("user_info")
    return RunFacts(
        domain=place.take("domain_name", str),
        revision=info.take("git_commit", str, default=None),
        case_seed=info.take("seed", int, default=None),
        max_steps=info.take("max_steps", int, check=_is_limit),
        max_errors=info.take("max_errors", int, check=_is_limit),
        learner=_participant(info.inside("agent_info")),
        customer=_participant(user),
        policy=place.take("policy", str, default=None),
        guidelines=user.take("global_simulation_guidelines", str, default=None),
    )


def _is_limit(value: int) -> bool:
    return 0 <= value <= 100_000


def _participant(found: Members) -> Participant:
    return Participant(
        found.take("implementation", str, default="unknown"),
        found.take("llm", str, default=None),
        found.take("llm_args", dict, default={}),
    )


def _tasks(whole: Members) -> dict[str, dict]:
    rows = whole.take("tasks", list, default=[])
    return {str(row.get("id")): row for row in rows if isinstance(row, dict)}


_ABOUT = ("timestamp", "start_time", "end_time", "duration", "agent_cost", "user_cost")


def _simulation(found: Members, index: int) -> Simulation:
    mode = found.take("mode", str, default="half_duplex")
    if mode != "half_duplex" or (found.value.get("ticks") and not found.value.get("messages")):
        raise found.fault(f"is a {mode} simulation: only text episodes in turns can be imported")
    termination = found.take("termination_reason", str)
    if termination not in TERMINATIONS:
        raise found.fault(f"is {termination!r}, which is no termination of tau2 1.0.1", "termination_reason")
    messages = found.take("messages", list, default=[])
    return Simulation(
        index=index,
        id=found.take("id", str, default=f"{index}"),
        task_id=str(found.take("task_id", (str, int))),
        trial=found.take("trial", int, default=None),
        seed=found.take("seed", int, default=None),
        termination=termination,
        messages=[_message(Members(m, found.path, *found.place, "messages", i)) for i, m in enumerate(messages)],
        reward_info=found.take("reward_info", dict, default=None),
        about={key: found.value[key] for key in _ABOUT if found.value.get(key) is not None},
    )


def _message(found: Members) -> dict:
    role = found.take("role", str, check=lambda value: value in ("assistant", "user", "tool"))
    found.take("content", str, default=None)
    if role == "tool":
        found.take("id", str)
        return found.value
    for i, call in enumerate(found.take("tool_calls", list, default=[])):
        one = Members(call, found.path, *found.place, "tool_calls", i)
        for name, kind in (("id", str), ("name", str), ("arguments", dict)):
            one.take(name, kind, **({"default": ""} if name == "id" else {}))
    return found.value


def normal_message(message: dict) -> dict:
    """A recorded message in the normal form of `replaykit.episode`."""
    if message["role"] == "tool":
        requestor, error = message.get("requestor") or "assistant", bool(message.get("error"))
        return {
            "role": "tool",
            "id": message["id"],
            "content": message.get("content"),
            "requestor": requestor,
            "error": error,
        }
    calls = message.get("tool_calls")
    return {
        "role": message["role"],
        "content": message.get("content"),
        "tool_calls": [_normal_call(c, message["role"]) for c in calls] if calls else None,
    }


def _normal_call(call: dict, role: str) -> dict:
    return {
        "id": call.get("id") or "",
        "name": call["name"],
        "arguments": call["arguments"],
        "requestor": call.get("requestor") or role,
    }


def seat_replies(messages: list[dict]) -> Iterator[tuple[int, str, SeatReply]]:
    """What learner and customer answered: index in the messages, seat, reply. The first message is tau2's greeting."""
    for index, message in enumerate(messages):
        if index and message["role"] != "tool":
            yield index, SEAT_OF[message["role"]], seat_reply(message)


def seat_reply(message: dict) -> SeatReply:
    """The reply behind a recorded message; the provider's own words come from its raw data where that is kept."""
    raw = _object(message.get("raw_data"))
    choice = _object(_first(raw.get("choices")))
    written = [
        _object(_object(c).get("function")).get("arguments")
        for c in _list(_object(choice.get("message")).get("tool_calls"))
    ]
    calls = message.get("tool_calls") or ()
    texts = written if len(written) == len(calls) else [None] * len(calls)
    return SeatReply(
        content=message.get("content"),
        tool_calls=tuple(
            ReplyCall(c.get("id") or "", c["name"], _arguments(c["arguments"], t))
            for c, t in zip(calls, texts, strict=True)
        ),
        finish_reason=_text(choice.get("finish_reason")),
        usage=_usage(raw.get("usage")) or _usage(message.get("usage")),
        model=_text(raw.get("model")),
        id=_text(raw.get("id")),
        cost=_number(message.get("cost")),
    )


def _arguments(value: dict, written: Any) -> str:
    """The model's own text where it says the same; else tau2's spelling."""
    if isinstance(written, str):
        try:
            if canonical.same(json.loads(written), value):
                return written
        except (ValueError, RecursionError):
            pass
    return json.dumps(value)


def judge_reply(simulation: Simulation, task: dict | None) -> SeatReply | None:
    """A judge's reply that says what the recorded checks say, or None: they are not recorded.

    The text of the real reply is not in a results file; its verdicts, reasons and their order are.
    """
    info = simulation.reward_info or {}
    checks = info.get("nl_assertions")
    if not isinstance(checks, list) or "NL_ASSERTION" not in _object(info.get("reward_breakdown")) or task is None:
        return None
    if not checks and "note" in _object(_object(info.get("info")).get("nl")):
        return None  # tau2 asked nobody
    rows = [_object(c) for c in checks]
    if not all({"nl_assertion", "met", "justification"} <= row.keys() for row in rows):
        return None
    results = [
        {"expectedOutcome": r["nl_assertion"], "reasoning": r["justification"], "metExpectation": r["met"]}
        for r in rows
    ]
    return SeatReply(content=json.dumps({"results": results}, ensure_ascii=False))


def _usage(value: Any) -> dict | None:
    counts = [_object(value).get(key) for key in ("prompt_tokens", "completion_tokens")]
    return dict(value) if all(type(n) is int for n in counts) else None


def _object(value: Any) -> dict:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
