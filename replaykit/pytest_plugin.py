"""The pytest plugin: cassettes as test items, fixtures for tests that use them, and the network kept out of replays.

Importing this imports pytest and nothing else; the rest of replaykit is loaded by the first item that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SUFFIXES = (".cassette.jsonl", ".cassette.jsonl.zst")
_USED, _UPDATED = "replaykit.cassette", "replaykit.updated"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and ini values."""
    group = parser.getgroup("replaykit", "replaykit: recorded episodes")
    group.addoption(
        "--replaykit", action="append", metavar="PATH", help="Replay every cassette below this folder as a test."
    )
    group.addoption(
        "--replaykit-fleet",
        metavar="FILE",
        help="Fleet file. Default: fleet.json here, else the one replaykit came with.",
    )
    group.addoption(
        "--replaykit-update",
        action="store_true",
        help="Rewrite cassettes that differ, after you looked at the differences.",
    )
    group.addoption(
        "--replaykit-update-force", action="store_true", help="Allow --replaykit-update where the variable CI is set."
    )
    group.addoption(
        "--replaykit-unused",
        action="store_true",
        help="Name the cassettes that no test used, and fail if there are any.",
    )
    parser.addini(
        "replaykit_paths", "Folders of cassettes to replay when no paths are given.", type="paths", default=[]
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, check the options, and add the folders to what is collected."""
    config.addinivalue_line(
        "markers", "cassette(path): the cassette that this test uses, relative to the test's file or the root."
    )
    state = State.of(config)
    if (
        config.getoption("--replaykit-update")
        and os.environ.get("CI")
        and not config.getoption("--replaykit-update-force")
    ):
        raise pytest.UsageError(
            "--replaykit-update is refused where the variable CI is set: rewrite where you review, or add --replaykit-update-force"
        )
    if config.getoption("--replaykit-unused") and not state.folders:
        raise pytest.UsageError(
            "--replaykit-unused needs a folder: give --replaykit PATH or set replaykit_paths in the ini file"
        )
    if state.collected:
        _extend_arguments(config, state)


def _extend_arguments(config: pytest.Config, state: State) -> None:
    """Without paths of their own on the command line, the folders are all that is collected."""
    named = [str(path) for path in state.collected]
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        config.args[:] = [*config.args, *(name for name in named if not _is_covered(name, config))]
    elif config.getoption("--replaykit"):
        config.args[:] = named
    else:
        config.args[:] = [*config.args, *named]


def _is_covered(name: str, config: pytest.Config) -> bool:
    """Whether the command line already names something in the folder."""
    here = config.invocation_params.dir
    paths = [(here / argument.partition("::")[0]).resolve() for argument in config.args]
    return any(path.is_relative_to(name) for path in paths)


class State:
    """What a run knows: folders, and what was used."""

    def __init__(self, config: pytest.Config) -> None:
        here = config.invocation_params.dir
        named = [(here / text).resolve() for text in config.getoption("--replaykit") or ()]
        missing = [path for path in named if not path.exists()]
        if missing:
            raise pytest.UsageError(f"--replaykit: {missing[0]} does not exist")
        configured = [path.resolve() for path in config.getini("replaykit_paths")]
        by_ini = config.args_source is not pytest.Config.ArgsSource.ARGS
        self.folders = [*named, *(path for path in configured if path.exists() and path not in named)]
        self.collected = named or (self.folders if by_ini else [])
        self.used: set[str] = set()
        self.updated: list[str] = []

    @classmethod
    def of(cls, config: pytest.Config) -> State:
        """The state of a run, made once."""
        if _STATE not in config.stash:
            config.stash[_STATE] = state = cls(config)
            config.pluginmanager.register(state, "replaykit-state")
        return config.stash[_STATE]

    def collects(self, path: Path) -> bool:
        """Whether a file is to be an item."""
        return path.name.endswith(SUFFIXES) and any(path.is_relative_to(folder) for folder in self.collected)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what was used and rewritten, from this process or a worker: reports carry it."""
        if report.when == "teardown":
            self.used.update(value for name, value in report.user_properties if name == _USED)
            self.updated.extend(value for name, value in report.user_properties if name == _UPDATED)


_STATE = pytest.StashKey[State]()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A cassette below a named folder."""
    if not file_path.name.endswith(SUFFIXES) or not State.of(parent.config).collects(file_path.resolve()):
        return None
    return CassetteFile.from_parent(parent, path=file_path)


class CassetteFile(pytest.File):
    """A cassette's file; its one item is its replay."""

    def collect(self) -> Iterator[pytest.Item]:
        """The replay."""
        yield ReplayItem.from_parent(self, name="replay")


class ReplayItem(pytest.Item):
    """The replay of one cassette; its panel and arm are names for ``-k``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.extra_keyword_matches.update(_names(self.path))

    def runtest(self) -> None:
        """Replay, offline, and fail on any divergence."""
        from replaykit import engine
        from replaykit.offline import offline
        from replaykit.replay import replay
        from replaykit.store import reader

        _note_use(self, self.path)
        runtime, fleet = engine.load(), _fleet(self.config)
        with offline():
            report = replay(reader.read(self.path), runtime, fleet, _shown(self.path, self.config))
        if report.status == "diverged" and self.config.getoption("--replaykit-update"):
            self._update(runtime, fleet)
        elif report.status != "equal":
            raise NotEqual(report)

    def _update(self, runtime: Any, fleet: Any) -> None:
        from replaykit.rewrite import rewrite

        report = rewrite(self.path, runtime, fleet)
        sentence = f"{_shown(self.path, self.config)}: {report.divergences[0].sentence}"
        self.user_properties.append((_UPDATED, sentence))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The first divergence or the error's sentence; a traceback only for what nobody expected."""
        from replaykit.errors import ReplaykitError

        if isinstance(excinfo.value, NotEqual):
            return "\n".join(_lines(excinfo.value.report))
        if isinstance(excinfo.value, ReplaykitError):
            return f"{type(excinfo.value).__name__}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where and what."""
        return self.path, None, f"replay of {_shown(self.path, self.config)}"


class NotEqual(Exception):
    """A replay that is not equal to its cassette."""

    def __init__(self, report: Any) -> None:
        super().__init__(report.status)
        self.report = report


def _lines(report: Any) -> list[str]:
    from replaykit.replay_many import Outcome
    from replaykit.reports import replay_report

    lines = list(replay_report.lines([Outcome(report.cassette, report)]))[:-1]
    if report.status == "incomplete":
        lines.append("           an interrupted recording proves nothing about its end: resume it, or leave it out")
    return lines


def _names(path: Path) -> set[str]:
    """Panel and arm, as far as the file says; a damaged file is found out when it is replayed."""
    from replaykit.errors import ReplaykitError
    from replaykit.store.scan import scan

    try:
        header = scan(path).header
    except ReplaykitError:
        return set()
    arm = header["arm"].get("name") if isinstance(header["arm"], dict) else None
    return {name for name in (header["panel"], arm) if isinstance(name, str)}


def _shown(path: Path, config: pytest.Config) -> str:
    try:
        return path.relative_to(config.invocation_params.dir).as_posix()
    except ValueError:
        return str(path)


def _note_use(item: pytest.Item, path: Path) -> None:
    """Reports carry it, so that it also arrives from other processes."""
    used = (_USED, str(path.resolve()))
    if used not in item.user_properties:
        item.user_properties.append(used)


_FLEET = pytest.StashKey[Any]()


def _fleet(config: pytest.Config) -> Any:
    from replaykit.store import fleet_file

    if _FLEET not in config.stash:
        named = config.getoption("--replaykit-fleet")
        config.stash[_FLEET] = fleet_file.read(config.invocation_params.dir / named if named else None)
    return config.stash[_FLEET]


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Any:
    """The cassette that ``@pytest.mark.cassette(path)`` names, read and verified (`replaykit.Cassette`)."""
    from replaykit.store import reader

    return reader.read(_marked(request))


@pytest.fixture
def replay_episode(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A function that replays a cassette offline and returns its `replaykit.ReplayReport`.

    ``replay_episode()`` takes the marked cassette, ``replay_episode(path)`` another one.
    """
    from replaykit import engine
    from replaykit.replay import replay
    from replaykit.store import reader

    def run(path: str | os.PathLike[str] | None = None) -> Any:
        target = _marked(request) if path is None else _found(request, path)
        return replay(reader.read(target), engine.load(), _fleet(request.config), _shown(target, request.config))

    return run


@pytest.fixture
def control_provider() -> Iterator[Any]:
    """A loopback provider of labelled controls (`replaykit.controls.ControlProvider`), running while the test does."""
    from replaykit.controls import ControlProvider

    with ControlProvider() as provider:
        yield provider


def _marked(request: pytest.FixtureRequest) -> Path:
    marker = request.node.get_closest_marker("cassette")
    if marker is None or len(marker.args) != 1:
        pytest.fail(
            f"{request.node.nodeid} uses a cassette without naming one: add @pytest.mark.cassette(path)", pytrace=False
        )
    return _found(request, marker.args[0])


def _found(request: pytest.FixtureRequest, path: str | os.PathLike[str]) -> Path:
    """A path as a test names it: beside the test, below the root, or absolute."""
    places = [request.path.parent / path, request.config.rootpath / path]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        pytest.fail(
            f"there is no cassette {os.fspath(path)!r} beside {request.path.name} or below {request.config.rootpath}",
            pytrace=False,
        )
    _note_use(request.node, found)
    return found


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Unused cassettes fail a run that was otherwise good."""
    if _unused(session.config) and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _unused(config: pytest.Config) -> list[Path]:
    if not config.getoption("--replaykit-unused") or hasattr(config, "workerinput"):
        return []
    from replaykit.store import reader

    state = State.of(config)
    return [path for path in reader.find(state.folders) if str(path.resolve()) not in state.used]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name what was rewritten and what was not used."""
    state = State.of(config)
    if state.updated:
        terminalreporter.section("replaykit: rewritten cassettes")
        for sentence in state.updated:
            terminalreporter.line(sentence)
    unused = _unused(config)
    if unused:
        terminalreporter.section("replaykit: cassettes that no test used")
        for path in unused:
            terminalreporter.line(_shown(path, config))
