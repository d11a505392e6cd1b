"""Reading other tools' files: bounded in size and depth, nothing executed, every fault one sentence with its place."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit.errors import UsageError

MAX_JSON = 1024 * 1024 * 1024
MAX_YAML = 128 * 1024 * 1024
MAX_DEPTH = 100
MAX_YAML_VALUES = 1_000_000


def read_bytes(path: Path, limit: int) -> bytes:
    """A whole file.

    Raises:
        UsageError: it cannot be read, or is larger than the limit.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise UsageError(f"{path} is larger than {limit} bytes, which is more than is read here")
    return data


def json_value(data: bytes, path: Path) -> Any:
    """The value of a JSON file's bytes.

    Raises:
        UsageError: it is not UTF-8, not JSON, empty, or nested too deeply; with line and column.
    """
    if not data.strip():
        raise UsageError(
            f"{path} is empty, which is not the same as a file without content: look at where it came from"
        )
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{path} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise UsageError(f"{path} is nested deeper than {MAX_DEPTH}") from error
    check_size(value, path, len(data))
    return value


def yaml_value(data: bytes, path: Path) -> Any:
    """The value of a YAML file's bytes, with plain tags only.

    Raises:
        UsageError: it is not UTF-8, not YAML, empty, names a type to build, or is nested or repeated too much.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = yaml.load(data.decode("utf-8"), Loader=loader)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from error
    except yaml.constructor.ConstructorError as error:
        raise UsageError(f"{path} asks to build what is not plain data ({_oneline(error)}): that is refused") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not YAML: {_oneline(error)}") from error
    if value is None:
        raise UsageError(
            f"{path} is empty, which is not the same as a file without content: look at where it came from"
        )
    check_size(value, path, MAX_YAML_VALUES)
    return value


def check_size(value: Any, path: Path, most: int) -> None:
    """Refuse a value that is nested too deeply, or that unfolds to too much (repeated YAML aliases).

    Args:
        most: How many values there may be in all.

    Raises:
        UsageError: it is.
    """
    level, count = [value], 0
    for _ in range(MAX_DEPTH + 1):
        count += len(level)
        if count > most:
            raise UsageError(f"{path} unfolds to more than {most} values")
        parts = itertools.chain.from_iterable(map(_parts, level))
        level = list(itertools.islice(parts, most + 1))
        if not level:
            return
    raise UsageError(f"{path} is nested deeper than {MAX_DEPTH}")


def _parts(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set)) else ()


def _oneline(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return (getattr(error, "problem", None) or " ".join(str(error).split()))[:200] + place


class Members:
    """Takes members out of an object and checks their types; a fault names file and JSON pointer.

    Args:
        value: What should be an object.
        path, place: Where it stands.
    """

    def __init__(self, value: Any, path: Path, *place: object) -> None:
        self.path, self.place = path, place
        if not isinstance(value, dict):
            raise self.fault("is not an object")
        self.value = value

    def fault(self, what: str, *more: object) -> UsageError:
        """An error about this place."""
        return UsageError(f"{self.path}: {canonical.pointer(*self.place, *more) or 'the document'} {what}")

    def take(
        self,
        name: str,
        kind: type | tuple[type, ...],
        *,
        default: Any = ...,
        check: Callable[[Any], bool] | None = None,
    ) -> Any:
        """One member; without it or with null the default, where there is one.

        Raises:
            UsageError: it is missing or of another type.
        """
        found = self.value.get(name)
        if found is None and default is not ...:
            return default
        if name not in self.value:
            raise self.fault(f"lacks {name!r}")
        is_flag = isinstance(found, bool) and bool not in (kind if isinstance(kind, tuple) else (kind,))
        if not isinstance(found, kind) or is_flag or (check is not None and not check(found)):
            raise self.fault(f"is {_said(found)}, which cannot be read here", name)
        return found

    def inside(self, name: str, *, default: Any = ...) -> Members:
        """A member that is an object itself."""
        return Members(self.take(name, dict, default=default), self.path, *self.place, name)


def _said(value: Any) -> str:
    text = (
        canonical.ordered(value).decode("utf-8", "replace")
        if not isinstance(value, (bytes, set, tuple))
        else repr(value)
    )
    return text if len(text) <= 60 else text[:57] + "…"
