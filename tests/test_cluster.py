"""Work on a Dask cluster: a scheduler and two workers as processes of their own on loopback."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from replaykit import cluster, engine, record_many, replay_many, score
from replaykit.certify import assemble, capture, panel_stage, rows, subject
from replaykit.certify.run import Order
from replaykit.certify.run import run as certify
from replaykit.cluster import Failed, Terms
from replaykit.errors import ClusterUnavailable, EngineNotReady, Incomplete, UsageError
from replaykit.store import reader
from replaykit.store.certificate_file import Evidence

ROOT = Path(__file__).parent.parent
PANELS = ("airline/0-7", "retail/0-7")


class Watch(record_many.Watch):
    """Calls back when a piece of work is done."""

    def __init__(self, on_step=lambda count: None) -> None:
        self._on_step, self.count = on_step, 0

    def step(self, errors: bool = False) -> None:
        self.count += 1
        self._on_step(self.count)


class Cluster:
    """A scheduler and workers; each is ended by its own id."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._processes = folder, []
        port = free_port()
        self.address = f"tcp://127.0.0.1:{port}"
        self._start(
            "dask_scheduler", ROOT, "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-jupyter"
        )

    def worker(self, place: Path = ROOT, **environment: str) -> subprocess.Popen:
        local = ("--local-directory", str(self._folder / f"w{len(self._processes)}"))
        once = ("--no-nanny", "--no-dashboard", "--nthreads", "1", "--host", "127.0.0.1", *local)
        return self._start("dask_worker", place, self.address, *once, **environment)

    def _start(self, what: str, place: Path, *arguments: str, **environment: str) -> subprocess.Popen:
        log = (self._folder / f"{what}-{len(self._processes)}.log").open("wb")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **environment}
        command = [sys.executable, "-m", f"distributed.cli.{what}", *arguments]
        process = subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log)
        log.close()
        self._processes.append(process)
        return process

    def wait_for(self, count: int) -> None:
        from distributed import Client

        deadline = time.monotonic() + 60
        while True:
            try:
                with Client(self.address, timeout=5, set_as_default=False) as client:
                    client.wait_for_workers(count, timeout=max(1, deadline - time.monotonic()))
                    return
            except (OSError, TimeoutError):
                if time.monotonic() > deadline:
                    raise

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


@pytest.fixture
def dask(tmp_path):
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    running = Cluster(tmp_path)
    yield running
    running.stop()


pytestmark = pytest.mark.filterwarnings("ignore")  # distributed's own


def statuses(outcomes) -> set[str]:
    return {o.report.status if o.report else o.error for o in outcomes}


def test_a_worker_killed_in_the_middle_costs_nothing_of_the_result(dask, recording, fleet):
    files = recording(*PANELS, jobs=2)
    victim, survivor = dask.worker(), dask.worker()
    dask.wait_for(2)
    watch = Watch(lambda count: os.kill(victim.pid, signal.SIGKILL) if count == 4 else None)
    far = replay_many.run_on(dask.address, files, fleet, watch)
    near = replay_many.run(files, fleet, 1, Watch())
    assert [o.to_dict() for o in far] == [o.to_dict() for o in near] and statuses(far) == {"equal"}
    assert victim.wait(10) == -signal.SIGKILL and survivor.poll() is None and watch.count == len(files)


def test_scores_read_on_a_cluster_are_those_read_here(dask, recording, fleet, tmp_path):
    files = recording("airline/0", "airline/7", "retail/2")
    cut, damaged = (tmp_path / f"{name}.cassette.jsonl" for name in ("cut", "damaged"))
    cut.write_bytes(files[0].read_bytes()[:9000])
    damaged.write_bytes(b"not a cassette\n")
    every = [*files, cut, damaged]
    dask.worker()
    dask.wait_for(1)
    far, near = score.read_on(dask.address, every, fleet, None, Watch()), score.read(every, fleet, None)
    assert score.document(far, (1,), None, 0.95) == score.document(near, (1,), None, 0.95)
    assert (len(far.trials), len(far.not_scored), len(far.unreadable)) == (3, 1, 1)


def test_a_worker_with_another_fleet_is_refused_in_a_sentence_and_the_other_does_the_work(
    dask, recording, fleet, tmp_path
):
    files, told = recording("airline/0", "retail/2"), []
    other = tmp_path / "other"
    other.mkdir()
    (other / "fleet.json").write_text(json.dumps(with_another_panel(ROOT / "fleet.json")))
    dask.worker(other), dask.worker()
    dask.wait_for(2)
    outcomes = replay_many.run_on(dask.address, files, fleet, Watch(), tell=told.append)
    assert statuses(outcomes) == {"equal"}
    assert len(told) == 1 and "is refused, since it has another fleet" in told[0]


def with_another_panel(path: Path) -> dict:
    fleet = json.loads(path.read_text())
    fleet["panels"] = fleet["panels"][:-1]
    return fleet


def test_without_a_fit_worker_nothing_is_sent(dask, fleet):
    dask.worker(), dask.wait_for(1)
    terms = Terms("0", None, fleet.digest)
    with pytest.raises(EngineNotReady, match="1 refused"):
        list(cluster.each(dask.address, len, [cluster.Piece("x", ("abc",))], terms))


def test_a_recording_on_a_cluster_ends_as_one_here_and_a_lost_worker_is_resumed(dask, fleet, tmp_path):
    victim = dask.worker()
    dask.worker(), dask.wait_for(2)
    plan = record_many.Plan(fleet, PANELS, (300,), tmp_path / "far", False, 1)
    watch = Watch(lambda count: os.kill(victim.pid, signal.SIGKILL) if count == 3 else None)
    outcomes = record_many.run_on(dask.address, plan, "reference", None, watch)
    near = record_many.run(
        record_many.Plan(fleet, PANELS, (300,), tmp_path / "near", False, 2), "reference", None, Watch()
    )
    assert [(o.panel, o.reward, o.final_db_hash) for o in outcomes] == [
        (o.panel, o.reward, o.final_db_hash) for o in near
    ]
    assert not any(reader.read(o.path).interrupted for o in outcomes)


def certification(fleet, **more) -> Order:
    transport = subject.load("openai-chat", {})
    return Order(transport, fleet, fleet.select(("airline/0-3", "retail/0-3")), "fast", engine.load(), {}, **more)


def panel_rows(order: Order, context: capture.Context, evidence: Evidence) -> list[dict]:
    facts, tally = assemble.facts_of(order.fleet), rows.Tally()
    captures = [(p.id, evidence.read(assemble.part_name(p.id))) for p in order.panels]
    return [rows.panel_row(c, order.profile, context.entropy, tally, facts[id_]) for id_, c in captures]


def test_panels_certified_on_a_cluster_have_the_rows_they_have_here_and_a_lost_worker_costs_nothing(
    dask, fleet, tmp_path
):
    victim = dask.worker()
    dask.worker(), dask.wait_for(2)
    watch = Watch(lambda count: os.kill(victim.pid, signal.SIGKILL) if count == 3 else None)
    far, near = certification(fleet, cluster=dask.address), certification(fleet)
    context = capture.Context(bytes(range(32)), far.profile)
    panel_stage.run(far, context, Evidence(tmp_path / "far"), watch)
    panel_stage.run(near, context, Evidence(tmp_path / "near"), Watch())
    there, here = (
        panel_rows(far, context, Evidence(tmp_path / "far")),
        panel_rows(near, context, Evidence(tmp_path / "near")),
    )
    assert [(r["id"], r["status"], r["checks"]) for r in there] == [(r["id"], r["status"], r["checks"]) for r in here]
    assert {r["status"] for r in there} == {"PASS"} and watch.count == len(far.panels)


def test_panels_that_a_worker_could_not_capture_are_named_and_the_others_kept(dask, fleet, tmp_path, monkeypatch):
    dask.worker(), dask.wait_for(1)
    order = certification(fleet, cluster=dask.address)
    context, evidence = capture.Context(bytes(32), order.profile), Evidence(tmp_path)
    monkeypatch.setattr(panel_stage.self_test, "source_digest", lambda: "0" * 64)
    with pytest.raises(Incomplete, match=r"8 of 8 panels .* airline/0: the certification's own code is another"):
        panel_stage.run(order, context, evidence, Watch())


def test_a_worker_with_another_transport_captures_nothing(fleet):
    order = certification(fleet)
    job = panel_stage.Job.of(order, capture.Context(bytes(32), order.profile))
    with pytest.raises(UsageError, match="openai-chat is another on the worker"):
        panel_stage.capture_there(dataclasses.replace(job, subject_sha256="0" * 64), ["airline/0"])


def test_a_certification_without_its_cluster_stops_before_the_first_check(fleet, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "CONNECT_S", 1.0)
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(ClusterUnavailable, match=address):
        certify(certification(fleet, cluster=address), Evidence(tmp_path), Watch())
    with pytest.raises(UsageError, match="a gateway is certified here"):
        certify(certification(fleet, cluster=address, control_port=1), Evidence(tmp_path), Watch())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_another_on_the_worker_is_no_evidence(recording):
    (path,) = recording("retail/2")
    outcome = replay_many.replay_there(str(path), "0" * 64, "seat", False)
    assert outcome.exit_code == 5 and "another file" in outcome.error


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"engine": "y"}, "another engine"),
        ({"fleet": "y"}, "another fleet"),
        ({"version": "2"}, "another version of replaykit"),
    ],
)
def test_terms_that_part_are_named(change, words):
    terms = {"version": "1", "engine": "x", "fleet": "x"}
    assert (
        Terms(**terms).parting(Terms(**{**terms, **change})) == words and Terms(**terms).parting(Terms(**terms)) is None
    )


def test_where_no_scheduler_answers_the_address_is_named(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "CONNECT_S", 1.0)
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(ClusterUnavailable, match=address):
        list(cluster.each(address, len, [], Terms("1", None, "x")))


def test_a_failed_piece_keeps_its_exit_code_under_the_name_it_has_here():
    outcome = replay_many._here(Failed("its worker was lost", 6), "a.cassette.jsonl")
    assert outcome.exit_code == 6 and outcome.error.startswith("a.cassette.jsonl: ")
