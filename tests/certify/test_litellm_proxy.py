"""The LiteLLM proxy, which we did not write, between transport and control provider: what it alters is shown.

It is found by the environment variable REPLAYKIT_LITELLM (an executable) or on the path; else the test is skipped.
"""

from __future__ import annotations

import http.client
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replaykit.certify import capture, catalogue, profile, subject
from replaykit.certify.control import RoutedProvider
from replaykit.certify.finding import Finding, combined

from .test_gateway import free_port

EXECUTABLE = os.environ.get("REPLAYKIT_LITELLM") or shutil.which("litellm")
CONFIG = """
model_list:
  - model_name: "*"
    litellm_params: {{model: "openai/*", api_base: "http://127.0.0.1:{port}/v1", api_key: "the-gateways-own-key"}}
litellm_settings: {{num_retries: 0, drop_params: false, telemetry: false}}
"""
CHECKS = ("C01", "C09", "C12", "C20", "C22", "C24", "C25", "C28", "C29", "C30", "C32", "C34", "C35")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(EXECUTABLE is None, reason="the LiteLLM proxy is not installed (pip install 'litellm[proxy]')"),
]


@contextmanager
def proxy(folder: Path, upstream: int) -> Iterator[str]:
    """The proxy; its base URL."""
    port, config = free_port(), folder / "config.yaml"
    config.write_text(CONFIG.format(port=upstream))
    own = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "NO_PROXY": "127.0.0.1",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    environment = os.environ | own
    command = [EXECUTABLE, "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            _wait(port, process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(20)


def _wait(port: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request("GET", "/health/liveliness")
            if connection.getresponse().read() and connection.sock is not None:
                return
        except OSError:
            time.sleep(0.5)
        finally:
            connection.close()
    pytest.skip("the LiteLLM proxy did not start here")


def certified(folder: Path) -> dict[str, Finding]:
    """Findings through the proxy."""
    upstream = free_port()
    with proxy(folder, upstream) as url:
        one = subject.load("openai-chat", {}, url)
        terms = profile.of_subject(one.identity(), "fast", gateway=True)
        with RoutedProvider(entropy=secrets.token_bytes(16), port=upstream) as provider:
            context = capture.Context(b"0" * 16, terms, provider)
            found = {}
            for check in map(catalogue.check, CHECKS):
                captures = {p.name: capture.perform(check.id, p, one, context) for p in check.probes(terms)}
                found[check.id] = combined(check.evaluate(captures, terms))
            return found


def test_the_rows_show_what_the_proxy_passes_on_and_what_it_alters(tmp_path: Path) -> None:
    found = certified(tmp_path)
    print({id_: (f.status, f.code, f.where) for id_, f in found.items()})
    passed = {id_ for id_, f in found.items() if f.status == "PASS"}
    assert passed, "nothing reached the control through the proxy"
    assert all(f.code for id_, f in found.items() if id_ not in passed)
