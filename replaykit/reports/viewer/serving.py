"""The viewer's page on loopback."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from replaykit.errors import UsageError
from replaykit.reports.viewer import page

HOST = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Serves one page to this machine. Use as a context manager; `serve_forever` blocks.

    Args:
        make: Gives the page's HTML; asked for every load, so that a reload shows what came since.
        port: 0: any free one.

    Raises:
        UsageError: the port is taken.
    """

    daemon_threads = True

    def __init__(self, make: Callable[[], str], port: int = 0) -> None:
        self.make = make
        try:
            super().__init__((HOST, port), _Page)
        except OSError as error:
            said = f"port {port} cannot be used: {error.strerror}; leave --port out to use a free one"
            raise UsageError(said) from error

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/"


class _Page(BaseHTTPRequestHandler):
    server: Server
    server_version = "replaykit"
    sys_version = ""

    def do_GET(self) -> None:
        """The page, and nothing else."""
        self._answer(send_body=True)

    def do_HEAD(self) -> None:
        """The page's headers."""
        self._answer(send_body=False)

    def _answer(self, send_body: bool) -> None:
        body = b""
        status = self._status()
        if status == 200:
            body = self.server.make().encode()
        self.send_response(status)
        for name, value in self._headers(len(body)):
            self.send_header(name, value)
        self.end_headers()
        if send_body:
            self.wfile.write(body)

    def _status(self) -> int:
        """A foreign host name is refused: a web page could have been pointed at this port (DNS rebinding)."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            return 403
        return 200 if self.path.partition("?")[0] == "/" else 404

    def _headers(self, length: int) -> list[tuple[str, str]]:
        return [
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", str(length)),
            ("Content-Security-Policy", page.policy() + "; frame-ancestors 'none'"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ]

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""
