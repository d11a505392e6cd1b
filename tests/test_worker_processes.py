"""Worker processes do not outlive the process that called them in."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from replaykit import processes
from replaykit.errors import InternalError

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


def nothing() -> None:
    """A begin or end without work."""


def double(item: int) -> int:
    return 2 * item


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Once:
    """Dies in the first worker that begins, and in no later one."""

    def __init__(self, mark) -> None:
        self.mark = mark

    def __call__(self) -> None:
        with contextlib.suppress(FileExistsError):
            self.mark.open("x").close()
            die()


def test_a_worker_lost_before_it_begins_is_replaced(tmp_path):
    job = processes.Job(double, Once(tmp_path / "mark"), nothing)
    assert dict(processes.each(job, range(5), 2)) == {n: 2 * n for n in range(5)}


def test_workers_that_never_begin_are_a_sentence():
    with pytest.raises(InternalError, match="lost before they begin"):
        list(processes.each(processes.Job(double, die, nothing), range(5), 2))


def test_a_worker_lost_in_its_last_check_voids_the_run():
    with pytest.raises(InternalError, match="lost in its last check"):
        list(processes.each(processes.Job(double, nothing, die), range(5), 2))
