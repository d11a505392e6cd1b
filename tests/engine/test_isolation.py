"""Loading tau2 touches no network and leaves the process as it was."""

from __future__ import annotations

import json
import subprocess
import sys

PROBE = """
import json, logging, os, sys, warnings
before = dict(os.environ), list(warnings.filters), logging.getLogger("LiteLLM").level, list(sys.meta_path)
opened = []
sys.addaudithook(lambda event, args: opened.append(event) if event.startswith("socket.") and event != "socket.__new__" else None)
from replaykit import engine
runtime = engine.load()
runtime.tool_schemas("retail")
after = dict(os.environ), list(warnings.filters), logging.getLogger("LiteLLM").level, list(sys.meta_path)
heavy = [n for n in ("litellm", "pandas", "fastapi", "openai", "numpy", "deepdiff", "httpx") if n in sys.modules]
stand_ins = [n for n, m in sys.modules.items() if type(m).__name__ == "_StandIn"]
import deepdiff
print(json.dumps({
    "sockets": opened,
    "unchanged": [a == b for a, b in zip(before, after)],
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
    assert seen == {"sockets": [], "unchanged": [True] * 4, "stand-ins": [], "heavy": [], "deepdiff": True}
