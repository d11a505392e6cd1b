"""The one sender: a POST, one attempt, a real deadline, and a record of what crossed the wire.

It never retries, follows no redirect, reads no environment, keeps no cookie and asks for no compression. One sender is
shared by all episode threads of a process.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpcore
import httpx

from replaykit.seats import SeatFailure, SeatReply, WireExchange
from replaykit.settings import TAU3_TEXT_1
from replaykit.transports import network
from replaykit.transports.failures import clean
from replaykit.transports.redaction import Secrets

MAX_RESPONSE_BYTES = 32 * 1024 * 1024
_TRACED = {
    "connection.connect_tcp.started": "connecting",
    "connection.connect_tcp.complete": "connected",
    "connection.start_tls.complete": "connected",
    "http11.send_request_body.complete": "sent",
    "http11.receive_response_headers.complete": "headers",
}

Headers = dict[str, list[str]]
Read = Callable[[int, Headers, bytes], SeatReply]


class DeadlineTransport(httpx.BaseTransport):
    """httpx's transport seam over an httpcore pool whose sockets obey `network.DeadlineBackend`."""

    def __init__(self, backend: network.DeadlineBackend, ssl_context: ssl.SSLContext) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context,
            max_connections=None,
            keepalive_expiry=backend.max_age_s,
            retries=0,
            network_backend=backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; raises httpcore's errors, which only the sender sees."""
        url = request.url
        response = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response), extensions=dict(response.extensions)
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Any:
        yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


@dataclass(slots=True)
class _Progress:
    """What one attempt has got so far: moments of the monotonic clock, the response's head, its body."""

    started: float
    moments: dict[str, float] = field(default_factory=dict)
    response: httpx.Response | None = None
    body: bytearray = field(default_factory=bytearray)

    def trace(self, name: str, _details: Mapping[str, Any]) -> None:
        if name in _TRACED:
            self.moments[_TRACED[name]] = time.monotonic()

    def timing(self) -> dict[str, float]:
        found, seconds = self.moments, {}
        if "connected" in found:
            seconds["connect_s"] = found["connected"] - found["connecting"]
        seconds |= {f"{k}_s": found[k] - self.started for k in ("sent", "headers") if k in found}
        return seconds | {"total_s": time.monotonic() - self.started}


class Sender:
    """Sends requests for any number of transports and threads.

    Args:
        secrets: Values that may appear in no message; transports add their own keys with ``secrets.keep``.
        max_response_bytes: Larger bodies are cut and refused.
        max_connection_age_s: No request starts on an older connection.
        ssl_context: For private authorities; by default certifi's, whatever the environment says.
    """

    def __init__(
        self,
        secrets: Iterable[str] = (),
        *,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        max_connection_age_s: float = network.MAX_CONNECTION_AGE_S,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.secrets = Secrets(secrets)
        self._max_bytes = max_response_bytes
        self._backend = network.DeadlineBackend(max_connection_age_s)
        # No httpx.Client around it: that would keep cookies and take Location headers apart, wanted or not.
        self._transport = DeadlineTransport(self._backend, ssl_context or httpx.create_ssl_context(trust_env=False))
        self._logged = [logging.getLogger(name) for name in ("httpcore.http11", "httpcore.connection")]
        for logger in self._logged:
            logger.addFilter(self._redact_log)

    def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        read: Read,
        on_exchange: Callable[[WireExchange], None],
        *,
        deadline_s: float = TAU3_TEXT_1.request_s,
        attempt: int = 1,
    ) -> SeatReply:
        """Make one attempt.

        Args:
            url: Absolute, without credentials.
            headers: All request headers but host and content-length, credential included.
            body: Exact bytes to send.
            read: Makes a reply of status, headers and raw body, or raises `SeatFailure`.
            on_exchange: Called exactly once with what crossed the wire; nothing is sent when it is not called. The
                exchange holds the credential: whoever stores it redacts it. It has neither response nor failure when
                this process was interrupted, since that says nothing of the provider.
            deadline_s: Seconds from now to the last byte of the response.
            attempt: Number of this attempt within the seat request.

        Raises:
            SeatFailure: no usable reply; its message holds no secret.
        """
        request = self._request(url, headers, body)
        exchange = WireExchange(attempt, _request_terms(request, body))
        progress = _Progress(time.monotonic())
        request.extensions["trace"] = progress.trace
        try:
            reply = self._attempt(request, deadline_s, progress, exchange, read)
        except SeatFailure as failure:
            exchange.failure = self._redacted(failure).to_dict()
            raise self._redacted(failure) from None
        except Exception as error:
            exchange.failure = SeatFailure("unreachable", f"interrupted by {type(error).__name__}").to_dict()
            raise
        finally:
            exchange.timing = progress.timing()
            on_exchange(exchange)
        return reply

    def close(self) -> None:
        """Close all connections; a thread that waits on one gets a failure now, not at its deadline."""
        self._backend.shut_all()
        self._transport.close()
        for logger in self._logged:
            logger.removeFilter(self._redact_log)

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _request(self, url: str, headers: Mapping[str, str], body: bytes) -> httpx.Request:
        try:
            return httpx.Request("POST", url, headers=dict(headers), content=body)
        except UnicodeError:
            raise SeatFailure(
                "unsendable", "a request header holds characters that HTTP cannot carry; nothing was sent"
            ) from None
        except httpx.InvalidURL:
            raise SeatFailure("unsendable", "the address is not a valid URL; nothing was sent") from None

    def _attempt(
        self, request: httpx.Request, deadline_s: float, progress: _Progress, exchange: WireExchange, read: Read
    ) -> SeatReply:
        deadline = network.Deadline(deadline_s)
        try:
            with self._backend.until(deadline):
                self._receive(request, progress)
        except (
            httpcore.TimeoutException,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.UnsupportedProtocol,
        ) as error:
            exchange.partial = bytes(progress.body)
            raise _broken(error, deadline, deadline_s, progress) from error
        except SeatFailure:
            exchange.partial = bytes(progress.body)
            raise
        exchange.response = _response_terms(progress)
        return read(progress.response.status_code, exchange.response["headers"], exchange.response["body"])

    def _receive(self, request: httpx.Request, progress: _Progress) -> None:
        response = progress.response = self._transport.handle_request(request)
        try:
            # Not iter_raw, which gives the connection back to the pool before its end is checked.
            for chunk in response.stream:
                progress.body += chunk
                if len(progress.body) > self._max_bytes:
                    raise SeatFailure(
                        "malformed", f"the response body is larger than {self._max_bytes} bytes", response.status_code
                    )
            stream = response.extensions["network_stream"]
            chunked = "chunked" in response.headers.get("transfer-encoding", "").lower()
            if not network.ends_cleanly(stream.received, chunked, len(progress.body)):
                stream.retire()
        finally:
            response.close()

    def _redacted(self, failure: SeatFailure) -> SeatFailure:
        message = self.secrets.redact(failure.message)
        return SeatFailure(failure.kind, message, failure.status, failure.retry_after_s)

    def _redact_log(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self.secrets.redact(record.getMessage()), ()
        return True


def _broken(error: Exception, deadline: network.Deadline, deadline_s: float, progress: _Progress) -> SeatFailure:
    status = None if progress.response is None else progress.response.status_code
    stage = _stage(progress)
    if isinstance(error, httpcore.TimeoutException) and deadline.left() <= 0.001:
        return SeatFailure("deadline", f"the {deadline_s:g} seconds of the whole request ran out while {stage}", status)
    if isinstance(error, (httpcore.LocalProtocolError, httpcore.UnsupportedProtocol)):
        # The error would quote the offending header, which may be the credential.
        return SeatFailure("unsendable", "a header or the address breaks the rules of HTTP; nothing was sent", status)
    return SeatFailure(
        "unreachable", f"the connection failed while {stage}: {clean(str(error)) or type(error).__name__}", status
    )


def _stage(progress: _Progress) -> str:
    moments = progress.moments
    if "headers" in moments:
        return f"reading the body ({len(progress.body)} bytes had come)"
    if "sent" in moments:
        return "waiting for the response"
    return "connecting" if "connecting" in moments and "connected" not in moments else "sending"


def _request_terms(request: httpx.Request, body: bytes) -> dict[str, Any]:
    return {"method": request.method, "uri": str(request.url), "headers": _grouped(request.headers.raw), "body": body}


def _response_terms(progress: _Progress) -> dict[str, Any]:
    response = progress.response
    reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
    return {
        "status": {"code": response.status_code, "message": reason},
        "headers": _grouped(response.headers.raw),
        "body": bytes(progress.body),
    }


def _grouped(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers by name as first spelt, in order, all values kept."""
    grouped: Headers = {}
    spelt: dict[bytes, str] = {}
    for name, value in raw:
        key = spelt.setdefault(name.lower(), name.decode("latin-1"))
        grouped.setdefault(key, []).append(value.decode("latin-1"))
    return grouped


__all__ = ["MAX_RESPONSE_BYTES", "DeadlineTransport", "Headers", "Sender"]
