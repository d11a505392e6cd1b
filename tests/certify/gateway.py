"""A small gateway for tests: forwards to one upstream, and may change the body on the way."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PASSED = ("content-type", "retry-after", "location", "content-encoding", "x-request-id")


@contextmanager
def gateway(upstream_port: int, change: Callable[[dict], dict] | None = None) -> Iterator[str]:
    """A gateway; its base URL."""

    class Forward(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if change is not None:
                body = json.dumps(change(json.loads(body))).encode()
            headers = {
                k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length", "connection")
            }
            upstream = http.client.HTTPConnection("127.0.0.1", upstream_port, timeout=20)
            try:
                upstream.request("POST", self.path, body=body, headers=headers)
                response = upstream.getresponse()
                data = response.read()
            except (OSError, http.client.HTTPException):
                self.close_connection = True
                self.connection.close()
                return
            finally:
                upstream.close()
            try:
                self.give_back(response, data)
            except OSError:  # the client has left
                self.close_connection = True

        def give_back(self, response: http.client.HTTPResponse, data: bytes) -> None:
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() in _PASSED:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Forward)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
