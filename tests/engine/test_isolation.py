"""Loading tau2 touches no network and leaves the process as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import util

import pytest
from loguru import logger

from replaykit.engine import slim

PROBE = """
import json, logging, os, sys, warnings
before = dict(os.environ), list(warnings.filters), logging.getLogger("LiteLLM").level, list(sys.meta_path), list(sys.path)
opened = []
sys.addaudithook(lambda event, args: opened.append(event) if event.startswith("socket.") and event != "socket.__new__" else None)
from replaykit import engine
runtime = engine.load()
runtime.tool_schemas("retail")
after = dict(os.environ), list(warnings.filters), logging.getLogger("LiteLLM").level, list(sys.meta_path), list(sys.path)
heavy = [n for n in ("litellm", "pandas", "fastapi", "openai", "numpy", "deepdiff", "httpx") if n in sys.modules]
tau2 = [n for n in sys.modules if n.partition(".")[0] == "tau2"]
stand_ins = [n for n, m in sys.modules.items() if type(m).__name__ == "_StandIn"]
import deepdiff
print(json.dumps({
    "sockets": opened,
    "unchanged": [a == b for a, b in zip(before, after)],
    "tau2": tau2,
    "stand-ins": stand_ins,
    "heavy": heavy,
    "deepdiff": str(deepdiff.DeepDiff({"a": 1}, {"a": 2})) != "",
}))
"""


def probe() -> dict:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == ""
    return json.loads(done.stdout.splitlines()[-1])


def test_loading_tau2_opens_no_socket_and_leaves_nothing_behind(runtime):
    seen = probe()
    assert seen == {"sockets": [], "unchanged": [True] * 5, "tau2": [], "stand-ins": [], "heavy": [], "deepdiff": True}


OTHERS = """
from replaykit import engine
engine.load()
from tau2.utils import llm_utils
import litellm
assert llm_utils.completion is litellm.completion, llm_utils.completion
"""


def test_others_in_the_process_get_a_whole_tau2(runtime):
    if runtime.identity.kind == "pinned":
        pytest.skip("upstream's tau2 may be a checkout, which only the engine can import")
    offline = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run([sys.executable, "-c", OTHERS], capture_output=True, text=True, check=False, env=offline)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_host_that_makes_warnings_errors_changes_no_tool_result(runtime):
    """A number of bags that is no whole number is stored as it came, and pydantic warns when it writes the row out."""
    call = {"reservation_id": "XEHM4B", "total_baggages": 2.5, "nonfree_baggages": 0, "payment_id": "credit_card_2408938"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strict = answer(runtime, call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert strict == answer(runtime, call)


def answer(runtime, arguments: dict) -> tuple:
    """What a tool says and does, as an episode sees it."""
    place = runtime.domain("airline")
    with slim.quiet():
        environment = place.environment()
        call = runtime._native.messages.ToolCall(id="c", name="update_reservation_baggages", arguments=arguments)
        reply = environment.get_response(call)
        return reply.content, reply.error, environment.get_db_hash()


def test_the_filters_are_put_back_when_the_last_of_several_threads_is_done():
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(hold_quiet, range(20)))
    assert list(warnings.filters) == before


def hold_quiet(turn: int) -> None:
    with slim.quiet():
        time.sleep(0.002 * (turn % 3))


def test_a_hosts_own_tau2_and_its_log_are_left_alone(monkeypatch, runtime):
    if runtime.identity.kind == "pinned":
        pytest.skip("upstream's tau2 may be a checkout, which only the engine can import")
    theirs, said = util.module_from_spec(util.find_spec("tau2")), []
    monkeypatch.setitem(sys.modules, "tau2", theirs)
    sink = logger.add(said.append)
    try:
        ours = slim.import_modules(("tau2.environment.environment",))["tau2.environment.environment"]
        ours.logger.bind(turn=1).error("a line of tau2")
        logger.info("a line of the host")
    finally:
        logger.remove(sink)
    assert [line.record["message"] for line in said] == ["a line of the host"]
    assert sys.modules["tau2"] is theirs and sys.modules["loguru"].logger is logger
    assert [name for name in sys.modules if name.startswith("tau2.")] == []


def test_the_digest_covers_every_module_of_tau2_that_an_episode_imports(runtime):
    sources = runtime._native.sources
    beyond = {name for name in sources if name not in {m.__name__ for m in runtime._native.modules.values()}}
    assert {"tau2.environment.db", "tau2.utils.utils", "tau2.domains.retail.utils"} <= beyond
    before = runtime._source_digest()
    name, place = "tau2.utils.utils", sources["tau2.utils.utils"]
    try:
        sources[name] = __file__
        assert runtime._source_digest() != before
    finally:
        sources[name] = place
    assert runtime._source_digest() == before
