"""The journal: writes a cassette record by record, as the episode happens.

Every record reaches the operating system before the call returns, so a kill leaves whole records and at most one torn
tail. Nothing is ever overwritten.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from replaykit.cassette import DIGEST_LENGTH, HEADER_KEYS, SCHEMA, summary_of
from replaykit.errors import Incomplete, InternalError, UsageError
from replaykit.request_digest import RequestDigests
from replaykit.seats import SeatFailure, SeatReply, SeatRequest, WireExchange
from replaykit.store import lines, reader, reopening
from replaykit.store.assembly import Assembly
from replaykit.store.container import Compression, index
from replaykit.store.packing import Lane, Packer, ShapeLane, common_start
from replaykit.store.redaction import Redactor
from replaykit.store.wire import WireLanes

LONG_FIELDS = ("result", "policy_states")  # kept out of the footer, so that it stays short to read


class Journal:
    """One episode's cassette while it is being written. Calls may come from any thread.

    Make one with `Journal.create` or `Journal.resume`; use it as a context manager or call `close` or `abandon`.
    A journal that is left without `close` leaves an interrupted cassette.
    """

    def __init__(self, path: Path, file: int, redactor: Redactor, compression: Compression | None) -> None:
        self.path = path
        self._file: int | None = file
        self._redactor = redactor
        self._compression = compression
        self._packer = Packer()
        self._seats: dict[str, _Seat] = {}
        self._askers: dict[int, str] = {}
        self._outcomes: set[int] = set()
        self._digests = RequestDigests()
        self._lock = threading.Lock()
        self._sum = SCHEMA
        self._whole = hashlib.sha256()
        self._stored = hashlib.sha256()
        self._size = 0
        self._exchange_count = 0
        self._counts: dict[str, int] = {}
        self._failed: str | None = None

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], header: Mapping[str, Any], redactor: Redactor, compress: bool | None = None
    ) -> Journal:
        """Begin a cassette in a new file and write its header.

        Args:
            path: Ends in ``.cassette.jsonl`` or ``.cassette.jsonl.zst``; parent folders are made.
            header: At least the members in `replaykit.cassette.HEADER_KEYS`.
            redactor: Applied to everything before it is written.
            compress: True or False; None: by the path's suffix.

        Raises:
            UsageError: the file exists, the folder cannot be made, or zstandard is not installed.
            Incomplete: the header cannot be written (a full disk).
            InternalError: the header lacks a member.
        """
        target = Path(path)
        missing = [key for key in HEADER_KEYS if key not in header]
        if missing:
            raise InternalError(f"{target}: the cassette's header lacks {', '.join(missing)}")
        zstd = target.suffix == ".zst" if compress is None else compress
        journal = cls(target, -1, redactor, Compression() if zstd else None)
        journal._file = _new_file(target)
        try:
            journal._write({"kind": "header", "schema": SCHEMA, **redactor.value(dict(header))})
        except BaseException:
            target.unlink()  # nothing is in it, and an empty file would stand in the way of the next attempt
            raise
        journal._end_frame()
        return journal

    @classmethod
    def resume(cls, path: str | os.PathLike[str], redactor: Redactor) -> Journal:
        """Reopen an interrupted cassette behind its last whole record.

        The torn tail, if any, is kept beside it as ``<name>.torn`` (a compressed file is kept whole).

        Raises:
            UsageError: it is complete, is missing, or is being written right now.
            Incomplete: it cannot be written (a full disk).
            EvidenceError: it is damaged.
        """
        target = Path(path)
        file, data = reopening.open_interrupted(target)
        try:
            found = _without_result(reader.verify(data, target), data, target)
            assembly = reader.assemble(found, target)
            if found.complete:
                raise UsageError(f"{target} is complete: there is nothing to resume")
            compression = Compression() if reader.is_compressed(target) else None
            journal = cls(target, file, redactor, compression)
            journal._continue(found, assembly, data)
            return journal
        except OSError as error:
            os.close(file)
            raise Incomplete(_full(target, error)) from error
        except BaseException:
            os.close(file)
            raise

    def request(self, request: SeatRequest) -> str:
        """Write a native request, before it is sent. Returns its digest as stored.

        The message dictionaries must not be changed afterwards.

        Raises:
            Incomplete: this or an earlier record cannot be written (a full disk); so do all methods that write.
            InternalError: the request is not the next one; so do the others when it was not asked or has an outcome.
        """
        with self._lock:
            self._check_open()
            if request.number != len(self._askers) + 1:
                raise InternalError(f"request {request.number} comes where request {len(self._askers) + 1} was due")
            seat = self._seat(request.seat)
            self._askers[request.number] = request.seat
            stored = seat.redacted(request, self._redactor)
            digest = self._digests.of(stored)
            native = seat.natives.pack(request.number, stored.to_dict(), self._packer)
            about = {"n": request.number, "seat": request.seat, "digest": digest[:DIGEST_LENGTH]}
            self._write({"kind": "request", **about, "native": native})
        return digest

    def exchange(self, number: int, exchange: WireExchange) -> None:
        """Write one wire exchange of request ``number``."""
        with self._lock:
            self._exchange_count += 1
            wire = self._asker(number).wire
            packed = wire.pack(self._exchange_count, exchange, self._packer, self._redactor)
            self._write({"kind": "exchange", "n": number, **packed})

    def reply(self, number: int, reply: SeatReply) -> None:
        """Write what a seat answered."""
        with self._lock:
            clean = self._redactor.value(reply.to_dict())
            packed = self._ended(number).replies.pack(number, clean, self._packer)
            self._write({"kind": "reply", "n": number, "reply": packed})

    def failure(self, number: int, failure: SeatFailure) -> None:
        """Write that a seat gave no usable reply."""
        with self._lock:
            self._ended(number)
            self._record("failure", {"n": number}, failure.to_dict())

    def end(self, number: int, end: Mapping[str, Any]) -> None:
        """Write what else ended a request: a spent budget, a refusal."""
        with self._lock:
            self._ended(number)
            self._record("end", {"n": number}, dict(end))

    def state(self, turn: int, digest: str) -> None:
        """Write the digest of the policy state after a learner turn."""
        with self._lock:
            self._write({"kind": "state", "turn": turn, "digest": self._packer.text(digest)})

    def note(self, note: Mapping[str, Any]) -> None:
        """Write a free record: the seam of a resume or a fork, say."""
        with self._lock:
            self._record("note", {}, dict(note))

    def close(self, fields: Mapping[str, Any]) -> None:
        """Write the result and the footer, and end the file.

        Args:
            fields: ``result`` (`EpisodeResult.to_dict`), usually ``policy_states``, and whatever else is worth
                keeping; what is neither of the two can be read without reading the whole file.

        Raises:
            InternalError: a request has no outcome yet.
        """
        with self._lock:
            self._check_ended()
            clean = self._redactor.value(dict(fields))
            long = {key: self._packer.tree(clean[key]) for key in LONG_FIELDS if key in clean}
            self._write({"kind": "result", **long})
            self._end_frame()
            footer_offset = self._size
            self._write(self._footer(clean))
            self._end_frame()
            if self._compression:
                self._append(index(footer_offset, self._stored))
            self._finish()
            if self._compression:
                reopening.tighten(self.path)

    def abandon(self) -> None:
        """Let go of the file as it is: an interrupted cassette. Does nothing after `close`."""
        with self._lock:
            self._finish()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()

    def _footer(self, fields: dict) -> dict:
        return {
            "kind": "footer",
            "summary": summary_of(fields.get("result") or {}),
            "fields": {key: value for key, value in fields.items() if key not in LONG_FIELDS},
            "counts": dict(self._counts),
            "digest": self._whole.hexdigest(),
        }

    def _continue(self, found: reader.Records, assembly: Assembly, data: bytes) -> None:
        whole = data[:found.whole_bytes]
        for value in assembly.pages.shared.values():
            self._packer.know(value)
        self._askers, self._outcomes = assembly.askers(), assembly.ended()
        self._exchange_count = assembly.exchange_count
        self._counts = reader.counts(found.records)
        self._sum = found.total
        self._whole.update(whole)
        if self._compression:
            self._file, stored = reopening.rewrite(self._file, self.path, whole, self._compression)
            self._stored.update(stored)
            self._size = len(stored)
        else:
            self._size = reopening.cut(self._file, self.path, data, found.whole_bytes)

    def _record(self, kind: str, members: dict, value: dict) -> None:
        self._write({"kind": kind, **members, kind: self._packer.inline(self._redactor.value(value))})

    def _asker(self, number: int) -> _Seat:
        self._check_open()
        if number not in self._askers:
            raise InternalError(f"request {number} was not asked before")
        return self._seat(self._askers[number])

    def _ended(self, number: int) -> _Seat:
        if number in self._outcomes:
            raise InternalError(f"request {number} has an outcome already")
        self._outcomes.add(number)
        return self._asker(number)

    def _seat(self, name: str) -> _Seat:
        if name not in self._seats:
            self._seats[name] = _Seat()
        return self._seats[name]

    def _write(self, record: dict) -> None:
        new = self._packer.take_new()
        if new:
            record["new"] = new
        line, self._sum = lines.write(record, self._sum)
        self._counts[record["kind"]] = self._counts.get(record["kind"], 0) + 1
        self._whole.update(line)
        self._append(self._compression.block(line) if self._compression else line)

    def _end_frame(self) -> None:
        if self._compression:
            self._append(self._compression.end())

    def _append(self, data: bytes) -> None:
        self._check_open()
        try:
            _write_all(self._file, data)
        except OSError as error:
            self._failed = _full(self.path, error)
            self._drop_partial()
            raise Incomplete(self._failed) from error
        self._stored.update(data)
        self._size += len(data)

    def _check_open(self) -> None:
        if self._file is None:
            raise Incomplete(self._failed) if self._failed else InternalError(f"{self.path} is already closed")

    def _check_ended(self) -> None:
        unanswered = sorted(self._askers.keys() - self._outcomes)
        if unanswered:
            raise InternalError(f"{self.path}: the episode ends, and request {unanswered[0]} has no outcome")

    def _drop_partial(self) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self._size)  # type: ignore[arg-type]
        self._finish()

    def _finish(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                os.fsync(file)
            os.close(file)


class _Seat:
    """What the journal remembers of one seat, to write only what is new."""

    __slots__ = ("_clean", "_clean_tools", "_given", "_tools", "natives", "replies", "wire")

    def __init__(self) -> None:
        self.natives = Lane()
        self.wire = WireLanes()
        self.replies = ShapeLane()
        self._given: list[dict] = []
        self._clean: list[dict] = []
        self._tools: Any = None
        self._clean_tools: Any = None

    def redacted(self, request: SeatRequest, redactor: Redactor) -> SeatRequest:
        """The request as it may be stored; only messages not seen before are looked at."""
        known = common_start(self._given, request.messages)
        self._clean = self._clean[:known] + [redactor.value(message) for message in request.messages[known:]]
        self._given = list(request.messages)
        if request.tools is not self._tools:
            self._tools, self._clean_tools = request.tools, redactor.value(request.tools)
        model, arguments = redactor.text(request.model), redactor.value(request.arguments)
        return replace(request, model=model, messages=self._clean, tools=self._clean_tools, arguments=arguments)


def _without_result(found: reader.Records, data: bytes, path: Path) -> reader.Records:
    """A result whose footer is missing is torn too: both are written together."""
    if found.complete or found.records[-1]["kind"] != "result":
        return found
    return reader.verify(data[:found.offsets[-1]], path)


def _new_file(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except FileExistsError as error:
        raise UsageError(f"{path} exists and is never overwritten: choose another name or move it away") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be created ({error.strerror}): choose another folder") from error
    return lines.claim(file, path)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view):]


def _full(path: Path, error: OSError) -> str:
    return (
        f"{path}: the cassette cannot be written any further ({error.strerror}); what is there is readable: "
        "free space and resume it"
    )
