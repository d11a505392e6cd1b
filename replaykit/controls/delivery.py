"""From a fault to the steps that put it on a socket. Pure: the same answer and fault give the same steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from replaykit.controls.faults import Fault
from replaykit.controls.http import response_head

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed response before it is framed; ``headers`` hold no length."""

    status: int
    headers: Headers
    body: bytes

    def head(self, length: int | None = None) -> bytes:
        """The response head, with the right length or with another one."""
        size = len(self.body) if length is None else length
        return response_head(self.status, (*self.headers, ("content-length", str(size))))

    def whole(self) -> bytes:
        """Head and body."""
        return self.head() + self.body


@dataclass(frozen=True, slots=True)
class Write:
    """Write these bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many (unscaled) seconds; None: until the client leaves or the provider stops."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class End:
    """End the connection with a FIN, or with a RST."""

    reset: bool = False


Step = Write | Pause | End


def steps(answer: Answer, fault: Fault | None) -> tuple[Step, ...]:
    """What to do on the socket for this answer under this fault. Without a final `End` the connection stays open."""
    shape = _SHAPES.get(fault.kind) if fault else None
    return shape(answer, fault) if shape and fault else (Write(answer.whole()),)


def _then(fault: Fault) -> tuple[Step, ...]:
    if fault["then"] == "silence":
        return Pause(None), End()
    return (End(reset=fault["then"] == "reset"),)


def _kept(answer: Answer, fault: Fault) -> bytes:
    return answer.body[: int(len(answer.body) * fault["keep"])]


def _with_type(answer: Answer, content_type: str, body: bytes, status: int = 200) -> Answer:
    others = tuple(h for h in answer.headers if h[0] != "content-type")
    return Answer(status, (("content-type", content_type), *others), body)


def _whole(answer: Answer) -> tuple[Step, ...]:
    return (Write(answer.whole()),)


def _html(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    page = b"<!DOCTYPE html>\n<html><head><title>Gateway</title></head><body><h1>Please wait</h1></body></html>\n"
    return _whole(_with_type(answer, "text/html; charset=utf-8", page, fault["status"]))


def _event_stream(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return _whole(_with_type(answer, "text/event-stream", b"data: " + answer.body + b"\n\ndata: [DONE]\n\n"))


def _wrong_type(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return _whole(_with_type(answer, fault["content_type"], answer.body, answer.status))


def _raw(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    body = fault["body"].encode("utf-8", "surrogateescape")
    return _whole(_with_type(answer, fault["content_type"], body, fault["status"]))


def _invalid_utf8(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    """Two bytes that no UTF-8 has, inside the first member's name: a lenient decoder would still find a reply."""
    return _whole(replace(answer, body=answer.body.replace(b'{"', b'{"\xff\xfe', 1)))


def _gzip_lie(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return _whole(replace(answer, headers=(*answer.headers, ("content-encoding", "gzip"))))


def _byte_order_mark(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return _whole(replace(answer, body=b"\xef\xbb\xbf" + answer.body))


def _empty_body(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return _whole(replace(answer, body=b""))


def _cut_json(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return _whole(replace(answer, body=_kept(answer, fault)))


def _wrong_length(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return Write(answer.head(len(answer.body) + fault["by"]) + answer.body), End()


def _half_body(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return Write(answer.head() + _kept(answer, fault)), *_then(fault)


def _reset_mid_body(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return Write(answer.head() + _kept(answer, fault)), End(reset=True)


def _reset_before_headers(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return (End(reset=True),)


def _unterminated_chunks(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    head = response_head(answer.status, (*answer.headers, ("transfer-encoding", "chunked")))
    return Write(head + b"%x\r\n%s\r\n" % (len(answer.body), answer.body)), *_then(fault)


def _close_after_headers(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return Write(answer.head()), End()


def _close_without_reply(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return (End(),)


def _idle_close(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return Write(answer.whole()), Pause(fault["after_s"]), End()


def _silence(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    return Pause(None), End()


def _dribble(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    """Headers at once, then a byte each interval; what is left after the time goes out in one piece."""
    count = min(int(fault["for_s"] / fault["interval_s"]), len(answer.body))
    single = [step for i in range(count) for step in (Pause(fault["interval_s"]), Write(answer.body[i : i + 1]))]
    rest = answer.body[count:]
    return Write(answer.head()), *single, *((Write(rest),) if rest else ())


def _late(answer: Answer, fault: Fault) -> tuple[Step, ...]:
    rest = max(fault["body_s"] - fault["headers_s"], 0.0)
    if not rest:
        return Pause(fault["headers_s"]), Write(answer.whole())
    return Pause(fault["headers_s"]), Write(answer.head()), Pause(rest), Write(answer.body)


_SHAPES: dict[str, Callable[[Answer, Fault], tuple[Step, ...]]] = {
    "html": _html,
    "event_stream": _event_stream,
    "wrong_type": _wrong_type,
    "raw": _raw,
    "invalid_utf8": _invalid_utf8,
    "gzip_lie": _gzip_lie,
    "byte_order_mark": _byte_order_mark,
    "empty_body": _empty_body,
    "cut_json": _cut_json,
    "wrong_length": _wrong_length,
    "half_body": _half_body,
    "reset_mid_body": _reset_mid_body,
    "reset_before_headers": _reset_before_headers,
    "unterminated_chunks": _unterminated_chunks,
    "close_after_headers": _close_after_headers,
    "close_without_reply": _close_without_reply,
    "idle_close": _idle_close,
    "silence": _silence,
    "dribble": _dribble,
    "late": _late,
}
