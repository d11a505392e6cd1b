"""`replaykit view`: a file, or a page on loopback."""

from __future__ import annotations

import http.client
import threading

import pytest

from replaykit.cli.app import run
from replaykit.reports.viewer.serving import Server
from replaykit.reports.viewer.shelf import Shelf


@pytest.fixture
def ask(domains):
    """Serve a folder and ask the server once for each ``(method, path, headers)``; the responses."""

    def serve(folder, *asked):
        with Server(Shelf([folder], domains).html) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                return [_asked(server.server_port, *request) for request in asked]
            finally:
                server.shutdown()
                thread.join()

    return serve


def _asked(port, method, path, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


def test_a_file_is_written_whole(cancelled, tmp_path, capsys):
    out = tmp_path / "view.html"
    assert run(["view", str(cancelled()), "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert "1 episodes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["view", "nowhere"], 2, "does not exist"),
        (["view", "."], 2, "there is no cassette below ."),
        (["view"], 2, "there is no folder 'recordings' or 'cassettes' here"),
        (["view", ".", "--out", "x.html", "--port", "1"], 2, "leave --port out"),
    ],
    ids=["a missing path", "an empty folder", "no path and no default", "a file and a port"],
)
def test_wrong_use_is_one_sentence(arguments, code, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == code
    assert said in capsys.readouterr().err


def test_a_damaged_cassette_is_named_and_the_others_are_shown(cancelled, tmp_path, capsys):
    path = cancelled()
    (tmp_path / "bad.cassette.jsonl").write_bytes(path.read_bytes().replace(b"Please cancel", b"Please accept", 1))
    assert run(["view", str(tmp_path), "--out", str(tmp_path / "o.html")]) == 5
    out = capsys.readouterr()
    assert "1 episodes" in out.out and "bad.cassette.jsonl" in out.err and "at byte" in out.err


def test_the_page_is_served_with_its_policy_as_a_header(cancelled, ask):
    ((status, headers, body),) = ask(cancelled().parent, ("GET", "/", {}))
    assert status == 200 and "<title>replaykit</title>" in body
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (("GET", "/", {"Host": "evil.example"}), 403),
        (("GET", "/etc/passwd", {}), 404),
        (("GET", "/../fleet.json", {}), 404),
        (("POST", "/", {}), 501),
        (("HEAD", "/", {}), 200),
        (("GET", "/?x=1", {}), 200),
    ],
    ids=["a foreign host name", "another path", "a path upwards", "another method", "a head", "a query"],
)
def test_nothing_but_the_page_is_served(request_, status, cancelled, ask):
    assert ask(cancelled().parent, request_)[0][0] == status


def test_only_this_machine_is_served(cancelled, domains):
    with Server(Shelf([cancelled()], domains).html) as server:
        assert server.server_address[0] == "127.0.0.1" and server.url == f"http://127.0.0.1:{server.server_port}/"


def test_a_port_that_is_taken_is_one_sentence(cancelled, domains, capsys):
    path = cancelled()
    with Server(Shelf([path], domains).html) as server:
        assert run(["view", str(path), "--port", str(server.server_port)]) == 2
    assert f"port {server.server_port} cannot be used" in capsys.readouterr().err


def test_a_reload_shows_what_was_recorded_since(cancelled, domains):
    shelf = Shelf([cancelled("one").parent], domains)
    first = shelf.html()
    assert shelf.html() is first
    cancelled("two")
    assert "retail-two" in shelf.html() and shelf.count == 2


def test_an_interrupt_ends_the_server_quietly(cancelled, monkeypatch, capsys):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", interrupted)
    assert run(["view", str(cancelled())]) == 0
    out = capsys.readouterr().out
    assert out.startswith("http://127.0.0.1:") and out.endswith("stopped\n")
