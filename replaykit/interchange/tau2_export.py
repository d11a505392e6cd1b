"""An episode in tau2's own results form (1.0 line), from a cassette's values. What is not known stands as null."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from replaykit import canonical
from replaykit.cassette import Cassette
from replaykit.episode import EpisodeResult
from replaykit.errors import EvidenceError
from replaykit.interchange.tau2_results import SEAT_OF
from replaykit.seats import SeatReply


def simulation(cassette: Cassette, trial: int, task: Mapping[str, Any], tool_kinds: Mapping[str, str]) -> dict:
    """One simulation.

    Args:
        cassette: A whole recording.
        trial: Its number among the trials of its task.
        task: tau2's task.
        tool_kinds: ``read`` or ``write`` by tool name.

    Raises:
        EvidenceError: messages and replies of the cassette do not fit together.
    """
    result, recorded = cassette.result, (cassette.footer or {}).get("recorded") or {}
    started, ended, duration = _times(cassette, recorded)
    return {
        "id": str(uuid.UUID(cassette.digest[:32])),
        "task_id": task["id"],
        "timestamp": recorded.get("timestamp") or ended,
        "start_time": started,
        "end_time": ended,
        "duration": duration,
        "termination_reason": result.termination,
        "agent_cost": _cost(cassette, "learner"),
        "user_cost": _cost(cassette, "customer"),
        "reward_info": reward_info(result, task, tool_kinds),
        "messages": list(messages(cassette, result)),
        "ticks": None,
        "trial": trial,
        "seed": result.seed,
        "mode": "half_duplex",
        "info": _origin(cassette, result),
    }


def _times(cassette: Cassette, recorded: Mapping[str, Any]) -> tuple[str, str, float]:
    """Start, end and seconds: as an imported run said, else from the header and the time on the wire."""
    if {"start_time", "end_time", "duration"} <= recorded.keys():
        return recorded["start_time"], recorded["end_time"], recorded["duration"]
    seconds = sum(e.timing.get("total_s", 0.0) for r in cassette.requests for e in r.exchanges)
    started = str(cassette.header["created_at"])
    try:
        ended = (datetime.fromisoformat(started) + timedelta(seconds=seconds)).isoformat()
    except ValueError:
        ended = started
    return started, ended, round(seconds, 4)


def _origin(cassette: Cassette, result: EpisodeResult) -> dict:
    """What tau2 has no member for, under one name."""
    header = cassette.header
    named = {key: header[key] for key in ("derived", "imported", "fork", "controls") if header.get(key)}
    about = {"panel": cassette.panel, "cassette_digest": cassette.digest, "final_db_hash": result.final_db_hash}
    return {"replaykit": {**about, "diagnostics": [d.to_dict() for d in result.diagnostics], **named}}


def _cost(cassette: Cassette, seat: str) -> float | None:
    """tau2's rule: unknown as soon as one reply reported none."""
    costs = [r.outcome.cost for r in cassette.requests if r.seat == seat and isinstance(r.outcome, SeatReply)]
    return None if any(cost is None for cost in costs) else float(sum(costs))


def messages(cassette: Cassette, result: EpisodeResult) -> Iterator[dict]:
    """The trajectory with what was reported of each reply.

    Raises:
        EvidenceError: a message has no reply, or another seat's.
    """
    replies = iter([(r.seat, r.outcome) for r in cassette.requests if r.seat != "judge"])
    for index, message in enumerate(result.trajectory):
        common = {"turn_idx": index, "timestamp": None}
        if message["role"] == "tool":
            yield {**message, **common}
            continue
        seat, reply = next(replies, (None, None)) if index else (None, SeatReply(cost=0.0))
        if not isinstance(reply, SeatReply) or (index and seat != SEAT_OF[message["role"]]):
            raise EvidenceError(
                f"message {index} of the trajectory is not the reply to the request it follows", cassette.path
            )
        raw = _raw_data(message, reply) if index else None
        yield {**message, **common, "cost": reply.cost, "usage": _usage(reply), "raw_data": raw}


def _usage(reply: SeatReply) -> dict | None:
    counts = {key: (reply.usage or {}).get(key) for key in ("completion_tokens", "prompt_tokens")}
    return None if None in counts.values() else counts


def _raw_data(message: dict, reply: SeatReply) -> dict:
    """The reply in the normal form in which tau2 keeps every provider's."""
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for c in reply.tool_calls
    ]
    said = {"role": "assistant", "content": reply.content, "tool_calls": calls or None}
    choice = {"finish_reason": reply.finish_reason, "index": 0, "message": said}
    return {
        "id": reply.id,
        "model": reply.model,
        "object": "chat.completion",
        "choices": [choice],
        "usage": reply.usage,
    }


def reward_info(result: EpisodeResult, task: Mapping[str, Any], tool_kinds: Mapping[str, str]) -> dict | None:
    """tau2's reward information; None where the reward is unknown, as tau2 has it for runs that failed."""
    if result.reward is None:
        return None
    info = result.reward_info or {}
    if "breakdown" not in info:
        return {"reward": result.reward, "reward_basis": None, "info": {"note": info.get("note")}}
    actions = (task.get("evaluation_criteria") or {}).get("actions") or []
    db, judged = info["db"], info["assertions"]
    return {
        "reward": result.reward,
        "db_check": db and {"db_match": db["match"], "db_reward": db["reward"]},
        "env_assertions": [],
        "action_checks": [_action_check(*pair, tool_kinds) for pair in zip(actions, info["actions"], strict=False)],
        "nl_assertions": judged
        and [{"nl_assertion": a["assertion"], "met": a["met"], "justification": a["justification"]} for a in judged],
        "communicate_checks": [{**check, "justification": ""} for check in info["communicate"]],
        "reward_basis": info["reward_basis"],
        "reward_breakdown": info["breakdown"],
        "info": _notes(info, task),
    }


def _notes(info: Mapping[str, Any], task: Mapping[str, Any]) -> dict:
    """Why a part holds no checks: tau2's readers tell "nothing to judge" from "the judge said nothing" by a note."""
    criteria = task.get("evaluation_criteria") or {}
    nobody_asked = info["assertions"] is not None and not criteria.get("nl_assertions")
    return {
        "env": None,
        "nl": {"note": "no assertions to judge"} if nobody_asked else None,
        "communicate": None,
        "action": None,
    }


def _action_check(action: dict, check: dict, tool_kinds: Mapping[str, str]) -> dict:
    met = bool(check["match"])
    return {
        "action": action,
        "action_match": met,
        "action_reward": float(met),
        "tool_type": tool_kinds.get(action["name"]),
    }


def participant(seat: Mapping[str, Any], model: str, arguments: dict, default: str) -> dict:
    """A seat as tau2's run information names it."""
    return {"implementation": str(seat.get("implementation") or default), "llm": model, "llm_args": arguments}


def document(info: dict, tasks: list[dict], simulations: list[dict], timestamp: str) -> dict:
    """A whole results file."""
    return {"timestamp": timestamp, "info": info, "tasks": tasks, "simulations": simulations}


def text(document: dict) -> str:
    """The file's text.

    Raises:
        EvidenceError: it holds what JSON has no form for.
    """
    try:
        return canonical.line(document).decode("utf-8")
    except ValueError as error:
        raise EvidenceError(
            f"a number in the episodes has no JSON form ({error}), and tau2's files have no other"
        ) from error
