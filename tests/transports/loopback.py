"""A loopback server that sends exactly the bytes it is told to, so that a fault is exact."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Answer = bytes | Callable[[socket.socket], None]


@dataclass
class Seen:
    """One request as it arrived."""

    connection: int
    head: bytes
    body: bytes
    at: float = field(default_factory=time.monotonic)

    def header(self, name: str) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.lower() == name.encode():
                return value.strip().decode("latin-1")
        return None


class Loopback(socketserver.ThreadingTCPServer):
    """Answers requests in order of arrival; the last answer repeats. An answer of b"" closes the connection."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answers: Iterable[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.answers = list(answers)
        self.seen: list[Seen] = []
        self.connections = 0
        self.lock = threading.Lock()
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def take(self, seen: Seen) -> Answer:
        with self.lock:
            self.seen.append(seen)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def __enter__(self) -> Loopback:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stopping.set()
        self.shutdown()
        self.server_close()


class _Connection(socketserver.BaseRequestHandler):
    server: Loopback

    def handle(self) -> None:
        with self.server.lock:
            self.server.connections += 1
            number = self.server.connections
        data = b""
        while not self.server.stopping.is_set():
            data, seen = self._read(data, number)
            if seen is None:
                return
            answer = self.server.take(seen)
            if answer == b"":
                return
            try:
                if callable(answer):
                    answer(self.request)
                else:
                    self.request.sendall(answer)
            except OSError:
                return
            if self.request.fileno() < 0:
                return

    def _read(self, data: bytes, number: int) -> tuple[bytes, Seen | None]:
        try:
            while b"\r\n\r\n" not in data:
                data += self._some()
            head, _, rest = data.partition(b"\r\n\r\n")
            length = int(Seen(number, head, b"").header("content-length") or 0)
            while len(rest) < length:
                rest += self._some()
        except OSError:
            return b"", None
        return rest[length:], Seen(number, head, rest[:length])

    def _some(self) -> bytes:
        chunk = self.request.recv(65536)
        if not chunk:
            raise OSError("closed")
        return chunk


def response(body: bytes, status: str = "200 OK", length: int | None = None, **headers: str) -> bytes:
    """A framed response; ``length`` may lie."""
    fields = {"content-type": "application/json", "content-length": str(len(body) if length is None else length)}
    fields |= {k.replace("_", "-"): v for k, v in headers.items()}
    head = "".join(f"{k}: {v}\r\n" for k, v in fields.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + body


def reset(sock: socket.socket) -> None:
    """Close with a RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    sock.close()


def then_reset(data: bytes) -> Answer:
    """Send, then reset."""

    def answer(sock: socket.socket) -> None:
        sock.sendall(data)
        time.sleep(0.05)
        reset(sock)

    return answer


def then_close(data: bytes) -> Answer:
    """Send, then close in good order."""

    def answer(sock: socket.socket) -> None:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_RDWR)
        sock.close()

    return answer


def dribble(data: bytes, every_s: float, head: bytes = b"") -> Answer:
    """Send the head at once, then one byte at a time."""

    def answer(sock: socket.socket) -> None:
        sock.sendall(head)
        for byte in data:
            time.sleep(every_s)
            sock.sendall(bytes([byte]))

    return answer


def silence(seconds: float) -> Answer:
    """Say nothing for a while, then close."""

    def answer(sock: socket.socket) -> None:
        time.sleep(seconds)
        sock.close()

    return answer
