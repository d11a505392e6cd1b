"""Single changes of a cassette's document, each with where the first difference has to be found."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

Expected = dict[str, Any]
"""Members that the first finding must have."""


def message_text(data: dict, rng: random.Random) -> Expected:
    """One word in one message of one request."""
    number, native = _request(data, rng)
    places = [i for i, m in enumerate(native["messages"]) if m.get("content")]
    at = rng.choice(places)
    words = native["messages"][at]["content"].split(" ")
    words.insert(rng.randrange(len(words) + 1), "changed")
    native["messages"][at]["content"] = " ".join(words)
    return {"section": "requests", "number": number, "seat": native["seat"], "pointer": f"/messages/{at}/content"}


def reply_argument(data: dict, rng: random.Random) -> Expected:
    """One value in the arguments of a tool call that a seat replied with."""
    number, reply = rng.choice(_calling(data))
    at = rng.randrange(len(reply["tool_calls"]))
    call = reply["tool_calls"][at]
    inner = _change_argument(call, rng)
    return {"section": "replies", "number": number, "pointer": f"/tool_calls/{at}/arguments", "inner": inner}


def history_argument(data: dict, rng: random.Random) -> Expected:
    """One value in the arguments of a tool call in the history of one request."""
    places = [
        (n, i, j)
        for n, turn in enumerate(data["turns"])
        for i, m in enumerate(turn["native"]["messages"])
        for j, call in enumerate(m.get("tool_calls") or ())
        if json.loads(call["function"]["arguments"])
    ]
    n, i, j = rng.choice(places)
    function = data["turns"][n]["native"]["messages"][i]["tool_calls"][j]["function"]
    inner = _change_argument(function, rng)
    pointer = f"/messages/{i}/tool_calls/{j}/function/arguments"
    return {"section": "requests", "number": n + 1, "pointer": pointer, "inner": inner}


def schema_key_order(data: dict, rng: random.Random) -> Expected:
    """The members of one tool schema in another order."""
    number, native = rng.choice([(n, t) for n, t in _natives(data) if t["tools"]])
    at = rng.randrange(len(native["tools"]))
    function = native["tools"][at]["function"]
    native["tools"][at]["function"] = dict(reversed(function.items()))
    return {"section": "requests", "number": number, "pointer": f"/tools/{at}/function", "kind": "order"}


def setting(data: dict, rng: random.Random) -> Expected:
    """One setting of the header."""
    member, value = rng.choice([("temperature", 0.5), ("top_p", 0.9), ("context_tokens", 65_536), ("request_s", 30.0)])
    data["header"]["settings"][member] = value
    return {"section": "settings", "number": None, "pointer": f"/settings/{member}", "right": value}


def request_setting(data: dict, rng: random.Random) -> Expected:
    """One argument that tau2 passes on with one request."""
    number, native = _request(data, rng)
    member = rng.choice(list(native["arguments"]))
    native["arguments"][member] = (native["arguments"][member] or 0) + 1
    return {"section": "requests", "number": number, "pointer": f"/arguments/{member}"}


def seat_order(data: dict, rng: random.Random) -> Expected:
    """Two neighbouring requests of different seats in the other order."""
    turns = data["turns"]
    places = [i for i in range(len(turns) - 1) if turns[i]["native"]["seat"] != turns[i + 1]["native"]["seat"]]
    at = rng.choice(places)
    turns[at], turns[at + 1] = turns[at + 1], turns[at]
    return {"section": "requests", "number": at + 1, "pointer": "/seat", "kind": "seat"}


def database_row(data: dict, rng: random.Random) -> Expected:
    """One field of one changed database row, and the hash that comes of it."""
    result = data["footer"]["result"]
    places = [(t, k, f) for t, rows in result["db_changes"].items() for k, c in rows.items() for f in c["after"]]
    table, key, field = rng.choice(places)
    result["db_changes"][table][key]["after"][field] = "changed"
    result["final_db_hash"] = "0" * 64
    return {"section": "database", "table": table, "key": key, "field": field, "pointer": f"/{table}/{key}/{field}"}


def number_type(data: dict, rng: random.Random) -> Expected:
    """One whole number written as a float."""
    place = rng.choice(["/budget/requests", "/seeds/case", "/settings/context_tokens"])
    *above, member = place.split("/")[1:]
    value = data["header"]
    for step in above:
        value = value[step]
    value[member] = float(value[member])
    return {"pointer": place, "kind": "number", "right": value[member]}


def missing_request(data: dict, rng: random.Random) -> Expected:
    """One request left out; those behind it move up."""
    number = rng.randrange(len(data["turns"]))
    seat = data["turns"].pop(number)["native"]["seat"]
    return {"section": "requests", "number": number + 1, "seat": seat, "kind": "missing", "pointer": ""}


def extra_request(data: dict, rng: random.Random) -> Expected:
    """One more request put in."""
    number = rng.randrange(len(data["turns"]))
    turn = copy.deepcopy(data["turns"][number])
    turn["native"]["messages"].append({"role": "user", "content": "One more."})
    data["turns"].insert(number, turn)
    return {"section": "requests", "number": number + 1, "seat": turn["native"]["seat"], "kind": "extra", "pointer": ""}


CHANGES = (
    message_text,
    reply_argument,
    history_argument,
    schema_key_order,
    setting,
    request_setting,
    seat_order,
    database_row,
    number_type,
    missing_request,
    extra_request,
)


def _natives(data: dict) -> list[tuple[int, dict]]:
    return [(n, turn["native"]) for n, turn in enumerate(data["turns"], 1)]


def _request(data: dict, rng: random.Random) -> tuple[int, dict]:
    return rng.choice(_natives(data))


def _calling(data: dict) -> list[tuple[int, dict]]:
    replies = [(n, t["outcome"].get("reply", {})) for n, t in enumerate(data["turns"], 1)]
    return [(n, r) for n, r in replies if any(json.loads(c["arguments"]) for c in r.get("tool_calls", ()))]


def _change_argument(holder: dict, rng: random.Random) -> str:
    arguments = json.loads(holder["arguments"])
    name = rng.choice(list(arguments))
    arguments[name] = {"changed": arguments[name]}
    holder["arguments"] = json.dumps(arguments)
    return f"/{name}"
