"""Episodes written as short lines, so that the tables of the policy tests can be read."""

from __future__ import annotations

import json

import pytest

from replaykit.policy import PolicyContext, final_state

TOOLS = {
    "airline": (
        "book_reservation cancel_reservation send_certificate update_reservation_baggages update_reservation_flights "
        "update_reservation_passengers",
        "calculate get_flight_status get_reservation_details get_user_details list_all_airports search_direct_flight "
        "search_onestop_flight transfer_to_human_agents",
    ),
    "retail": (
        "cancel_pending_order exchange_delivered_order_items modify_pending_order_address modify_pending_order_items "
        "modify_pending_order_payment modify_user_address return_delivered_order_items",
        "calculate find_user_id_by_email find_user_id_by_name_zip get_item_details get_order_details "
        "get_product_details get_user_details list_all_product_types transfer_to_human_agents",
    ),
}


def context(domain="airline", *actions):
    """A domain's context; an action is ``"name {json}"`` or ``"name {json} compare [json]"``."""
    writes, others = (frozenset(names.split()) for names in TOOLS[domain])
    return PolicyContext(domain, writes, writes | others, tuple(_action(action) for action in actions))


def play(*lines):
    """A normalised trajectory from lines.

    ``user: TEXT``, ``agent: TEXT``, ``call NAME {JSON}`` (several joined by `` + ``, text beside them after `` | ``),
    and ``ok: CONTENT`` or ``error: CONTENT`` for the results, in order.
    """
    trajectory = [{"role": "assistant", "content": "Hi! How can I help you today?", "tool_calls": None}]
    waiting = []
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind == "call":
            message = _calls(rest, len(trajectory))
            waiting = list(message["tool_calls"])
        elif kind in ("ok:", "error:"):
            content = f"Error: {rest}" if kind == "error:" else rest
            message = {
                "role": "tool",
                "id": waiting.pop(0)["id"],
                "content": content,
                "requestor": "assistant",
                "error": kind == "error:",
            }
        else:
            role = {"user:": "user", "agent:": "assistant"}[kind]
            message = {"role": role, "content": rest, "tool_calls": None}
        trajectory.append(message)
    return trajectory


def _calls(text, place):
    calls, _, beside = text.partition(" | ")
    parsed = [_call(part, f"c{place}.{i}") for i, part in enumerate(calls.split(" + "))]
    return {"role": "assistant", "content": beside or None, "tool_calls": parsed}


def _call(text, call_id):
    name, _, arguments = text.partition(" ")
    return {"id": call_id, "name": name, "arguments": json.loads(arguments or "{}"), "requestor": "assistant"}


def _action(text):
    call, _, keys = text.partition(" compare ")
    name, _, arguments = call.partition(" ")
    return {
        "name": name,
        "arguments": json.loads(arguments or "{}"),
        "requestor": "assistant",
        "compare_args": json.loads(keys) if keys else None,
    }


@pytest.fixture(name="play", scope="session")
def _play():
    return play


@pytest.fixture(name="context", scope="session")
def _context():
    return context


@pytest.fixture(scope="session")
def judged():
    """The final state of an episode written as lines."""

    def run(lines, domain="airline", actions=(), **ending):
        return final_state(play(*lines), context(domain, *actions), **ending)

    return run
