"""Worker processes do not outlive the process that called them in."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, time
from replaykit import processes

def nothing(): pass

def slow(item):
    print(os.getpid(), flush=True)
    time.sleep(0.2)

list(processes.each(processes.Job(slow, nothing, nothing), range(1000), 2))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_parent_leaves_no_worker_behind():
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        workers: set[int] = set()
        while len(workers) < 2:
            workers.add(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
        _, said = parent.communicate(timeout=20)  # ends when the last process that can write has ended
    assert said == ""
