"""The sender over TLS, against a loopback server with a certificate of its own."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator

import pytest

from replaykit.seats import SeatFailure, SeatReply
from replaykit.transports.sender import Sender

from .loopback import response

x509 = pytest.importorskip("cryptography.x509")


def read(_status: int, _headers: dict, body: bytes) -> SeatReply:
    return SeatReply(content=body.decode())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> str:
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return str(path)


@pytest.fixture
def trusting(certificate) -> Iterator[Sender]:
    with Sender(ssl_context=ssl.create_default_context(cafile=certificate)) as sender:
        yield sender


def serve(certificate: str | None, answer) -> tuple[socket.socket, str]:
    """A server for one connection; without a certificate it never shakes hands."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        sock, _ = listener.accept()
        with sock:
            try:
                if certificate is not None:
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                    context.load_cert_chain(certificate)
                    sock = context.wrap_socket(sock, server_side=True)
                    received = b""
                    while not received.endswith(b"{}"):  # head and body may come in two pieces; unread bytes reset
                        received += sock.recv(65536)
                answer(sock)
            except OSError:
                pass
            finally:
                sock.close()

    threading.Thread(target=run, daemon=True).start()
    return listener, f"https://127.0.0.1:{listener.getsockname()[1]}/v1"


def test_a_reply_comes_over_tls_and_its_connection_is_measured(certificate, trusting, exchanges):
    listener, url = serve(certificate, lambda sock: sock.sendall(response(b"{}")))
    with listener:
        assert trusting.post(url, {}, b"{}", read, exchanges.append).content == "{}"
    assert 0 < exchanges[0].timing["connect_s"] <= exchanges[0].timing["sent_s"]


def test_an_unknown_authority_is_unreachable_and_nothing_is_sent(certificate, sender, exchanges):
    listener, url = serve(certificate, lambda sock: sock.sendall(response(b"{}")))
    with listener, pytest.raises(SeatFailure, match="certificate verify failed") as caught:
        sender.post(url, {"authorization": "Bearer k"}, b"{}", read, exchanges.append)
    assert caught.value.kind == "unreachable" and "sent_s" not in exchanges[0].timing


def test_a_handshake_that_hangs_is_cut_at_the_deadline(trusting, exchanges):
    listener, url = serve(None, lambda sock: time.sleep(1.0))
    started = time.monotonic()
    with listener, pytest.raises(SeatFailure) as caught:
        trusting.post(url, {}, b"{}", read, exchanges.append, deadline_s=0.3)
    assert caught.value.kind == "deadline" and time.monotonic() - started < 0.8


def test_a_body_that_dribbles_over_tls_is_cut_at_the_deadline(certificate, trusting, exchanges):
    def dribble(sock: ssl.SSLSocket) -> None:
        sock.sendall(response(b"", length=100))
        for _ in range(40):
            time.sleep(0.05)
            sock.sendall(b"x")

    listener, url = serve(certificate, dribble)
    started = time.monotonic()
    with listener, pytest.raises(SeatFailure) as caught:
        trusting.post(url, {}, b"{}", read, exchanges.append, deadline_s=0.4)
    assert caught.value.kind == "deadline" and time.monotonic() - started < 0.9
