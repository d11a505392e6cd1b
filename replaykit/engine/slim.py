"""Import tau2 without the model library, data frames, web framework and voice code that a replay never uses.

While tau2's modules are imported, a finder in front of ``sys.meta_path`` answers for the names in `HEAVY` with
modules whose members refuse to be used. Afterwards the finder and the stand-ins are taken out again, so the real
libraries import normally in the same process (the ``litellm`` transport, deepdiff). Nothing is stubbed silently:
calling any member raises `ModelCallRefused`, naming the library. A library that is already imported is left alone.
tau2's modules themselves are taken out of ``sys.modules`` too: these are ours, and whoever else imports tau2 in the
process gets it whole.

tau2's log lines, hundreds an episode, would be nobody's: its modules get a logger that is silent, also where the host
uses loguru itself. The process environment, the warning filters and the log levels are put back too: tau2 loads a
``.env`` file and changes warning filters at import.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from replaykit.errors import ModelCallRefused

HEAVY = ("litellm", "pandas", "numpy", "deepdiff", "fastapi", "uvicorn", "httpx", "plotly", "langfuse", "redis")
# Calls tau2's modules make while they are imported, and which mean nothing without the library.
_HARMLESS = {
    ("litellm", "disable_cache"),
    ("httpx", "Limits"),
    ("httpx", "Client"),
    ("httpx", "AsyncClient"),
}
_LOG = "loguru"
_IMPORT_ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHON_DOTENV_DISABLED": "1"}
_LOCK = threading.RLock()


class _Refusing(type):
    """A class standing in for a library's member: usable in annotations, refusing to be called."""

    def __call__(cls, *args: object, **kwargs: object) -> object:
        raise ModelCallRefused(
            f"tau2 tried to use {cls.__module__}.{cls.__name__}, which replaykit does not load: "
            "only the three seats may ask a model"
        )


class _Silent:
    """tau2's logger: takes every line and writes none."""

    @staticmethod
    def _say(*_args: object, **_kwargs: object) -> None:
        """Nothing."""

    trace = debug = info = success = warning = error = critical = exception = log = _say
    add = remove = configure = enable = disable = level = complete = _say

    def bind(self, *_args: object, **_kwargs: object) -> _Silent:
        """Itself, as with every other option of a line."""
        return self

    opt = patch = bind


class _StandIn(ModuleType):
    """A module whose members are made on demand and refuse to be called."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if (self.__name__, name) == (_LOG, "logger"):
            return _Silent()
        if (self.__name__, name) in _HARMLESS:
            return lambda *args, **kwargs: None
        member = _Refusing(name, (), {"__module__": self.__name__})
        setattr(self, name, member)
        return member


class _StandInFinder(MetaPathFinder, Loader):
    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.made: set[str] = set()

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] in self.names:
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.made.add(spec.name)
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: members are made when asked for."""


def import_modules(names: tuple[str, ...], bare_packages: tuple[tuple[str, str], ...] = ()) -> dict[str, ModuleType]:
    """Import modules by name with the heavy libraries left out.

    Args:
        names: Modules to import, in order.
        bare_packages: ``(package, folder)`` pairs entered as empty packages first, so that their ``__init__`` (which
            pulls in a runner nobody needs here) does not run. A package that is already imported is left alone.

    Returns:
        By name these modules, and those of tau2 that they import.

    Raises:
        ImportError: as Python raises it.
    """
    with _LOCK, quiet(), _environment(), _stand_ins(), _private() as taken, _bare(bare_packages):
        named = {name: importlib.import_module(name) for name in names}
    return taken | named


@contextmanager
def _stand_ins() -> Iterator[None]:
    host_log = sys.modules.pop(_LOG, None)
    finder = _StandInFinder(frozenset(n for n in (*HEAVY, _LOG) if n not in sys.modules))
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in finder.made:
            sys.modules.pop(name, None)
        if host_log is not None:
            sys.modules[_LOG] = host_log


@contextmanager
def _private() -> Iterator[dict[str, ModuleType]]:
    """Import tau2 anew and take it out of ``sys.modules`` again: others who import it have it with its libraries.

    Yields:
        What will hold the modules that were taken out.
    """
    theirs, ours = _taken_out(), {}
    try:
        yield ours
    finally:
        ours |= _taken_out()
        sys.modules.update(theirs)


def _taken_out() -> dict[str, ModuleType]:
    """tau2's modules, which are no longer in ``sys.modules``."""
    names = [name for name in sys.modules if name.partition(".")[0] == "tau2"]
    return {name: sys.modules.pop(name) for name in names}


@contextmanager
def _bare(packages: tuple[tuple[str, str], ...]) -> Iterator[None]:
    made = {}
    for name, folder in packages:
        if name not in sys.modules:
            made[name] = sys.modules[name] = ModuleType(name)
            made[name].__path__ = [folder]
    yield
    for name, module in made.items():
        parent, _, child = name.rpartition(".")
        if parent and parent in sys.modules:
            setattr(sys.modules[parent], child, module)


@contextmanager
def _environment() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(_IMPORT_ENVIRONMENT)
    os.environ.pop("LLM_CACHE_ENABLED", None)
    model_library_log = logging.getLogger("LiteLLM")
    level = model_library_log.level
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        model_library_log.setLevel(level)
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


_quiet_depth = 0
_filters = ExitStack()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the warnings of tau2's serializer away while this runs; nests, and is shared by threads.

    Upstream ignores those warnings for the whole process. Where a host turns warnings into errors they would become
    errors of tools, and change an episode.
    """
    global _quiet_depth
    with _LOCK:
        if not _quiet_depth:
            _filters.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
        _quiet_depth += 1
    try:
        yield
    finally:
        with _LOCK:
            _quiet_depth -= 1
            if not _quiet_depth:
                _filters.close()
