"""Transports by name; the one in the documentation is run."""

from __future__ import annotations

import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys

import pytest

import replaykit.transports as transports
from replaykit.errors import UsageError
from replaykit.seats import SeatFailure

from .conftest import ask_for
from .examples import HISTORY, TOOLS, encoded
from .loopback import Loopback, response

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "transports.md"


@pytest.mark.parametrize("name", [n for n in transports.BUILT_IN if n != "litellm"])
def test_every_built_in_name_loads(name):
    assert callable(transports.load(name))


def modules_after(code: str) -> set[str]:
    """The modules a fresh interpreter holds after running some code."""
    command = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_listing_names_imports_no_transport():
    loaded = modules_after("import replaykit.transports as t; t.names()")
    assert not [m for m in loaded if m.startswith(("httpx", "httpcore", "replaykit.transports."))]


@pytest.mark.parametrize("name", [n for n in transports.BUILT_IN if n != "litellm"])
def test_loading_a_conversion_needs_no_http_library(name):
    assert not {"httpx", "httpcore"} & modules_after(f"import replaykit.transports as t; t.load({name!r})")


REFUSED = {
    "unknown": ("nowhere", "there is no transport 'nowhere'; choose from"),
    "no module": ("no_such_module:X", "cannot be loaded from no_such_module:X"),
    "no attribute": ("json:Nothing", "cannot be loaded from json:Nothing"),
    "empty": (":", "cannot be loaded"),
    "not callable": ("json:__doc__", "is no factory"),
}


@pytest.mark.parametrize(("name", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_a_name_that_leads_nowhere_is_refused(name, sentence):
    with pytest.raises(UsageError, match=re.escape(sentence)):
        transports.load(name)


def registered(monkeypatch, *entries: tuple[str, str]) -> None:
    group = transports.ENTRY_POINT_GROUP
    points = importlib.metadata.EntryPoints(importlib.metadata.EntryPoint(n, v, group) for n, v in entries)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **wanted: points.select(**wanted))


def test_another_package_registers_by_entry_point(monkeypatch):
    registered(monkeypatch, ("mine", "collections:OrderedDict"))
    assert transports.load("mine").__name__ == "OrderedDict"
    assert transports.names()["mine"] == "collections:OrderedDict"


def test_a_name_registered_twice_is_refused(monkeypatch):
    registered(monkeypatch, ("mine", "json:loads"), ("mine", "json:dumps"))
    with pytest.raises(UsageError, match="registered twice"):
        transports.load("mine")


def test_nobody_takes_the_place_of_a_built_in(monkeypatch):
    registered(monkeypatch, ("openai-chat", "json:loads"))
    assert transports.load("openai-chat").__name__ == "OpenAIChat"
    assert transports.names()["openai-chat"].startswith("replaykit.")


@pytest.fixture
def documented(tmp_path, monkeypatch):
    source = re.search(r"<!-- plain_text.py -->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    (tmp_path / "plain_text.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "plain_text", raising=False)
    return transports.load("plain_text:PlainText")


def test_the_documented_transport_is_about_fifty_lines(documented):
    assert 40 <= len(pathlib.Path(sys.modules["plain_text"].__file__).read_text(encoding="utf-8").splitlines()) <= 60


def test_the_documented_transport_speaks_its_wire(documented, sender, exchanges):
    answer = {"text": None, "calls": [{"id": "c", "name": "list_all", "arguments": "{}"}], "finish": "call"}
    with Loopback([response(encoded(answer))]) as server:
        seat = documented(base_url=server.url, model="m", key="k", sender=sender)
        reply = seat.ask(ask_for(*HISTORY, tools=TOOLS, tool_choice="auto"), exchanges.append)
    assert reply.finish_reason == "tool_calls" and reply.tool_calls[0].name == "list_all"
    body = json.loads(server.seen[0].body)
    assert body["limit"] == 4096 and "seed" not in body and len(body["talk"]) == len(HISTORY)
    assert server.seen[0].header("authorization") == "Bearer k" and len(exchanges) == 1
    assert seat.identity()["transport"] == "plain-text" and "seed" in seat.identity()["capabilities"]["not_carried"]


def test_the_documented_transport_turns_faults_into_failures(documented, sender, exchanges):
    with Loopback([response(b'{"error":"busy"}', "503 Busy"), response(b'{"calls":5}')]) as server:
        seat = documented(base_url=server.url, model="m", sender=sender)
        kinds = []
        for _ in range(2):
            with pytest.raises(SeatFailure) as caught:
                seat.ask(ask_for(), exchanges.append)
            kinds.append(caught.value.kind)
    assert kinds == ["overloaded", "malformed"]
