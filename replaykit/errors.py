"""Every error replaykit raises on purpose, each with the exit code it ends a command with.

    ReplaykitError                     6
    ├── UsageError                     2   wrong option, unknown panel, unreadable input
    ├── EngineNotReady                 3   no tau2, a foreign tau2, wrong data
    ├── Incomplete                     3   a result that must not be read as complete
    ├── SeatError                      4   a seat gave no usable reply (see `SeatFailure` in seats)
    ├── OfflineViolation               4   a socket was opened during a replay
    ├── ClusterUnavailable             4   no scheduler answers
    ├── EvidenceError                  5   damaged, forged, truncated or foreign evidence
    │   └── SchemaTooNew               5   a newer replaykit wrote it
    ├── ToolNameMismatch               1   the two names of a native tool call disagree
    ├── PrefixDiverged                 1   a recorded beginning does not play as recorded, so nothing can go on from it
    ├── ModelCallRefused               6   tau2 asked a model from outside the three seats
    └── InternalError                  6   a bug here, or a self-test that failed

Messages are one sentence: what, where, what to do. They never hold a secret: whatever comes from
outside is redacted before it becomes part of a message.
"""

from __future__ import annotations


class ReplaykitError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 6


class UsageError(ReplaykitError):
    """Wrong use, or input that cannot be read."""

    exit_code = 2


class EngineNotReady(ReplaykitError):
    """The tau2 engine is missing, foreign, or has the wrong data.

    Args:
        message: What is wrong and what to do, in one sentence.
        finding: Stable name of the finding, e.g. ``no_engine`` or ``unrelated_tau2``.
    """

    exit_code = 3

    def __init__(self, message: str, finding: str = "engine_not_ready") -> None:
        super().__init__(message)
        self.finding = finding


class Incomplete(ReplaykitError):
    """Something planned was not done, so the result says less than was asked for."""

    exit_code = 3


class SeatError(ReplaykitError):
    """A seat could not be asked at all."""

    exit_code = 4


class OfflineViolation(ReplaykitError):
    """A socket was opened although the run promised to stay offline."""

    exit_code = 4


class ClusterUnavailable(ReplaykitError):
    """The cluster's scheduler does not answer, or was lost."""

    exit_code = 4


class EvidenceError(ReplaykitError):
    """A cassette, certificate or other evidence is damaged, forged or not ours.

    Args:
        message: What is wrong.
        path: The file, if it is one.
        offset: Byte offset of the fault in the (decompressed) file.
    """

    exit_code = 5

    def __init__(self, message: str, path: object = None, offset: int | None = None) -> None:
        place = "" if path is None else f"{path}: "
        at = "" if offset is None else f" (at byte {offset})"
        super().__init__(f"{place}{message}{at}")
        self.path, self.offset, self.reason = path, offset, message


class SchemaTooNew(EvidenceError):
    """The file was written by a newer replaykit than this one."""


class ToolNameMismatch(ReplaykitError):
    """A native assistant tool call carries two names that disagree; nothing may be sent.

    Args:
        pointer: JSON pointer of the tool call in the native request.
        outer: The redundant top-level ``name``.
        inner: ``function.name``.
    """

    exit_code = 1

    def __init__(self, pointer: str, outer: object, inner: object) -> None:
        super().__init__(
            f"the tool call at {pointer} is named {outer!r} outside and {inner!r} inside; "
            "nothing was sent: make the two names agree"
        )
        self.pointer, self.outer, self.inner = pointer, outer, inner


class PrefixDiverged(ReplaykitError):
    """The recorded beginning of an episode does not play as it was recorded; nothing was asked."""

    exit_code = 1


class ModelCallRefused(ReplaykitError):
    """tau2 asked a language model from a place that is not one of the three seats."""


class InternalError(ReplaykitError):
    """replaykit itself is wrong."""
