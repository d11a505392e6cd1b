"""The pytest plugin: cassettes as items, fixtures, rewriting, unused cassettes; judged by running pytest on folders."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from replaykit.store import reader

pytest_plugins = ["pytester"]
INSTALLED = any(e.value == "replaykit.pytest_plugin" for e in metadata.entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "replaykit.pytest_plugin")
PANELS = ("airline/0", "airline/1", "retail/0")
NAMES = [f"cassettes/{domain}/{n}-one-exchange-s300.cassette.jsonl" for domain, n in (p.split("/") for p in PANELS)]


@pytest.fixture(scope="session")
def recorded(runtime, fleet, tmp_path_factory):
    """A folder with three small cassettes, recorded once."""
    from replaykit import record_many

    out = tmp_path_factory.mktemp("recorded") / "cassettes"
    record_many.run(record_many.Plan(fleet, PANELS, (300,), out, False, 1), "one-exchange", None, record_many.Watch())
    return out


@pytest.fixture
def project(pytester, recorded, monkeypatch):
    """A project with a folder of cassettes and a fleet."""
    monkeypatch.delenv("CI", raising=False)
    if not INSTALLED:
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    shutil.copytree(recorded, pytester.path / "cassettes")
    shutil.copy(Path(__file__).parent.parent / "fleet.json", pytester.path)
    pytester.makeini("[pytest]\n")
    return pytester


def run(project, *arguments, apart=False):
    """Run pytest in the project, in this process or in one of its own."""
    return (project.runpytest_subprocess if apart else project.runpytest_inprocess)(*PLUGIN, *arguments)


def damage(project, name):
    """Change one byte of a cassette."""
    path = project.path / name
    data = path.read_bytes()
    path.write_bytes(data[:400] + bytes([data[400] ^ 1]) + data[401:])


@pytest.fixture
def other_tools(runtime, monkeypatch):
    """An engine whose airline tools stand in another order: every airline cassette diverges."""
    domain = runtime.domain("airline")
    monkeypatch.setattr(domain, "schemas", domain.schemas[::-1])


def test_every_cassette_below_the_folder_is_an_item(project):
    result = run(project, "--replaykit", "cassettes", "--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == [f"{name}::replay" for name in NAMES]


def test_replays_pass(project):
    run(project, "--replaykit", "cassettes").assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("words", "passed"),
    [("airline", 2), ("retail", 1), ("replay", 3), ("airline and not 1-one", 1), ("retail/0", 1)],
)
def test_k_selects_by_path_panel_and_arm(project, words, passed):
    run(project, "--replaykit", "cassettes", "-k", words).assert_outcomes(passed=passed, deselected=3 - passed)


def test_a_node_id_selects_one_replay(project):
    run(project, "--replaykit", "cassettes", f"{NAMES[1]}::replay").assert_outcomes(passed=1)


def test_without_paths_only_cassettes_are_collected_and_with_paths_both(project):
    project.makepyfile("def test_one(): pass")
    run(project, "--replaykit", "cassettes").assert_outcomes(passed=3)
    run(project, "--replaykit", "cassettes", ".").assert_outcomes(passed=4)


def test_the_ini_file_names_folders_for_runs_without_paths(project):
    project.makeini("[pytest]\nreplaykit_paths = cassettes\ntestpaths = tests\n")
    project.mkdir("tests").joinpath("test_one.py").write_text("def test_one(): pass")
    run(project).assert_outcomes(passed=4)
    run(project, "tests").assert_outcomes(passed=1)


def test_a_folder_that_is_not_there_is_said(project):
    result = run(project, "--replaykit", "nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--replaykit: *nowhere does not exist*"])


def test_a_failure_prints_the_first_divergence_and_no_traceback(project, other_tools):
    result = run(project, "--replaykit", "cassettes")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["*first divergence: the learner's request 2 differs at /tools/0/*", "*recorded: *", "*now: *"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_a_damaged_file_fails_by_a_sentence_with_its_place(project):
    damage(project, NAMES[0])
    result = run(project, "--replaykit", "cassettes")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["EvidenceError: *0-one-exchange-s300.cassette.jsonl: *(at byte *"])


def test_an_interrupted_recording_fails_as_incomplete(project):
    path = project.path / NAMES[0]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    result = run(project, "--replaykit", "cassettes")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["incomplete *", "*an interrupted recording proves nothing*"])


def test_lf_runs_what_failed(project):
    damage(project, NAMES[1])
    run(project, "--replaykit", "cassettes").assert_outcomes(passed=2, failed=1)
    run(project, "--replaykit", "cassettes", "--lf").assert_outcomes(failed=1)


def test_two_processes_collect_alike_and_replay_all(project):
    damage(project, NAMES[1])
    result = run(project, "--replaykit", "cassettes", "-n", "2", "-v", apart=True)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*EvidenceError: *"])
    run(project, "--replaykit", "cassettes", "-n", "2", "--lf", apart=True).assert_outcomes(failed=1)


MARKED = """
import pytest

@pytest.mark.cassette("cassettes/airline/0-one-exchange-s300.cassette.jsonl")
def test_of_a_cassette(cassette, replay_episode):
    assert cassette.panel == "airline/0"
    assert replay_episode().status == "equal"

def test_of_another(replay_episode):
    assert replay_episode("cassettes/retail/0-one-exchange-s300.cassette.jsonl").panel == "retail/0"
"""


def test_fixtures_read_and_replay_what_the_marker_names(project):
    project.makepyfile(MARKED)
    run(project, "--strict-markers").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("def test_it(cassette): pass", "*uses a cassette without naming one: add @pytest.mark.cassette(path)*"),
        (
            "def test_it(replay_episode): replay_episode('no.cassette.jsonl')",
            "*there is no cassette 'no.cassette.jsonl' beside *",
        ),
    ],
)
def test_a_cassette_that_is_not_named_or_not_there_is_said(project, body, sentence):
    project.makepyfile(body)
    result = run(project)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([sentence])


def test_the_control_provider_answers_on_loopback_while_the_test_runs(project):
    project.makepyfile("""
        import socket
        from urllib.parse import urlsplit
        from replaykit.controls import one_exchange

        def test_it(control_provider):
            control_provider.add_case("a", one_exchange())
            url = urlsplit(control_provider.base_url("a", "learner"))
            socket.create_connection((url.hostname, url.port), timeout=5).close()
    """)
    run(project).assert_outcomes(passed=1)


def test_sockets_are_refused_in_replays_and_nowhere_else(project, runtime, monkeypatch):
    import socket

    listener = socket.create_server(("127.0.0.1", 0))
    run_episode = runtime.run

    def opens_a_socket(*arguments):
        socket.create_connection(listener.getsockname(), timeout=5).close()
        return run_episode(*arguments)

    monkeypatch.setattr(runtime, "run", opens_a_socket)
    project.makepyfile(f"""
        import socket

        def test_it():
            socket.create_connection({listener.getsockname()!r}, timeout=5).close()
    """)
    with listener:
        result = run(project, "--replaykit", "cassettes/retail", ".", "-k", "retail or test_it")
    result.assert_outcomes(passed=1, failed=1, deselected=0)
    result.stdout.fnmatch_lines(["OfflineViolation: a socket was opened while replaying*"])


def test_update_rewrites_what_differs_and_names_it(project, other_tools):
    old = reader.read(project.path / NAMES[0])
    result = run(project, "--replaykit", "cassettes", "--replaykit-update")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["*rewritten cassettes*", f"{NAMES[0]}: the learner's request 2 differs*", f"{NAMES[1]}: *"]
    )
    new = reader.read(project.path / NAMES[0])
    assert new.header["rewritten"]["from"] == old.digest
    assert [r.outcome for r in new.requests] == [r.outcome for r in old.requests]
    assert [bool(r.exchanges) for r in new.requests] == [True, False, True]
    assert sorted(p.name for p in (project.path / "cassettes/airline").iterdir()) == [Path(n).name for n in NAMES[:2]]
    run(project, "--replaykit", "cassettes").assert_outcomes(passed=3)


def test_update_leaves_equal_and_damaged_files_alone(project):
    damage(project, NAMES[1])
    before = {name: (project.path / name).read_bytes() for name in NAMES}
    run(project, "--replaykit", "cassettes", "--replaykit-update").assert_outcomes(passed=2, failed=1)
    assert {name: (project.path / name).read_bytes() for name in NAMES} == before


def test_update_does_not_invent_replies(project, runtime, monkeypatch):
    before = (project.path / NAMES[2]).read_bytes()
    run_episode = runtime.run
    monkeypatch.setattr(runtime, "run", lambda *a: run_episode(*a[:4], one_more(a[4]), *a[5:]))
    result = run(project, "--replaykit", "cassettes/retail", "--replaykit-update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["PrefixDiverged: *no reply is recorded for that, so record * anew"])
    assert (project.path / NAMES[2]).read_bytes() == before


def one_more(ask):
    """An engine that asks the judge first."""
    given = []

    def asks(request):
        if not given:
            given.append(ask(replace(request, seat="judge", number=1)))
        return ask(request)

    return asks


@pytest.mark.parametrize(
    ("extra", "code"), [((), pytest.ExitCode.USAGE_ERROR), (("--replaykit-update-force",), pytest.ExitCode.OK)]
)
def test_update_is_refused_in_ci_unless_forced(project, monkeypatch, extra, code):
    monkeypatch.setenv("CI", "true")
    assert run(project, "--replaykit", "cassettes", "--replaykit-update", *extra).ret == code


@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_cassettes_that_no_test_used_are_named_and_fail_the_run(project, processes):
    project.makeini("[pytest]\nreplaykit_paths = cassettes\n")
    project.makepyfile(MARKED)
    result = run(project, "--replaykit-unused", ".", "-k", "test_of", *processes, apart=bool(processes))
    result.stdout.fnmatch_lines(["*cassettes that no test used*", NAMES[1]])
    result.stdout.no_fnmatch_line(NAMES[0])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_run_that_used_every_cassette_passes(project):
    assert run(project, "--replaykit", "cassettes", "--replaykit-unused").ret == pytest.ExitCode.OK


def test_unused_without_a_folder_is_wrong_use(project):
    assert run(project, "--replaykit-unused").ret == pytest.ExitCode.USAGE_ERROR


def test_nothing_heavy_is_imported_when_no_option_is_used(project):
    project.makepyfile("""
        import sys

        def test_it():
            heavy = {"pydantic", "httpx", "vcr", "deepdiff", "tau2", "replaykit.store", "replaykit.errors"}
            assert not heavy & set(sys.modules)
    """)
    run(project, "-p", "no:anyio", "-p", "no:hypothesispytest", apart=True).assert_outcomes(passed=1)


def test_importing_the_plugin_imports_pytest_alone():
    code = "import sys, pytest; a = {*sys.modules}; import replaykit.pytest_plugin; print(*sorted({*sys.modules} - a))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["replaykit", "replaykit._version", "replaykit.pytest_plugin"]
