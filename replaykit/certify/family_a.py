"""A: identity, isolation, and the truth about who answered."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from replaykit.certify import capture as capturing
from replaykit.certify.capture import Bench, Context
from replaykit.certify.check import Check
from replaykit.certify.finding import Failed, Unseen
from replaykit.certify.masking import PREFIX
from replaykit.certify.probe import Probe, Step, hello, with_twins
from replaykit.certify.profile import Profile
from replaykit.certify.subject import Subject
from replaykit.certify.views import Views
from replaykit.controls.faults import REDIRECTS, Fault
from replaykit.seats import SEATS

_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_NO_PROXY = ("NO_PROXY", "no_proxy")


class Tripwire:
    """A listener that must stay silent; counts whoever comes."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self.first_bytes: list[bytes] = []
        self._thread.start()

    @property
    def origin(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        """Stop listening."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(2)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(0.5)
                try:
                    self.first_bytes.append(connection.recv(4096))
                except OSError:
                    self.first_bytes.append(b"")


@contextmanager
def tripwire() -> Iterator[Tripwire]:
    """A tripwire for the time of a block."""
    wire = Tripwire()
    try:
        yield wire
    finally:
        wire.close()


def _seats(profile: Profile) -> list[Probe]:
    return [Probe("seats", tuple(Step(s, s, hello(s)) for s in SEATS))]


def _judge_seats(views: Views) -> None:
    for seen in views.steps:
        exchange = seen.only()
        if exchange.seat != seen.step.seat:
            raise Failed("seat_swapped", f"the {seen.step.seat}'s request went to the {exchange.seat}")
        if exchange.model != seen.step.request(1).model:
            raise Failed("wrong_model", f"{exchange.model!r} was asked for")
    for seat in SEATS:
        label = views.capture["labels"].get(seat, {})
        if label.get("control") is not True or not str(label.get("label", "")).startswith("control:"):
            raise Failed("unlabelled", f"the {seat}'s control")


def _proxied(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    """The steps with proxy variables that point at a tripwire. Changes the environment: nothing else may run beside."""
    saved = {name: os.environ.pop(name, None) for name in (*_PROXY_VARIABLES, *_NO_PROXY)}
    with tripwire() as wire:
        os.environ.update(dict.fromkeys(_PROXY_VARIABLES, wire.origin))
        try:
            with Bench(f"{check}-{probe.name}", with_twins(probe), {"scaled": True}, subject, context) as bench:
                bench.ask_all()
                body = bench.capture()
        finally:
            for name, value in saved.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
        return body | {"tripwire": len(wire.first_bytes)}


def _judge_proxied(views: Views) -> None:
    if views.capture["tripwire"]:
        raise Failed("proxy_used", f"{views.capture['tripwire']} connections to the proxy of the environment")


def _redirected(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    with tripwire() as wire:
        steps = tuple(
            Step(
                f"{status}-{place}",
                "learner",
                hello("learner"),
                fault=Fault("redirect", {"status": status, "target": target}),
                healthy=False,
            )
            for status in REDIRECTS
            for place, target in (("self", "self"), ("other", wire.origin))
        )
        with Bench(f"{check}-{probe.name}", (*with_twins(probe), *steps), {"scaled": True}, subject, context) as bench:
            bench.ask_all()
            body = bench.capture()
        canary = bench.canary.found(b"".join(wire.first_bytes))
        ordinals = [i + 3 for i, step in enumerate(steps) if step.name.endswith("other")]  # behind the learner's twins
        placed = {"other_origin": wire.origin, "other_ordinals": ordinals}
        return body | placed | {"tripwire": len(wire.first_bytes), "tripwire_canary": canary}


def _judge_redirected(views: Views) -> None:
    if views.capture["tripwire_canary"]:
        raise Failed("credential_resent", "the key went to the address of a redirect")
    if views.capture["tripwire"]:
        raise Failed("redirect_followed", "to another origin")
    for seen in views.steps:
        if len(seen.wire) > 1:
            raise Failed("redirect_followed", f"{seen.step.name}: {len(seen.wire)} requests")
        if seen.only() and seen.outcome != "redirect_refused":
            raise Failed("redirect_unclassified", f"{seen.step.name}: {seen.outcome}")


def _redirect_steps(profile: Profile) -> list[Probe]:
    named = tuple(
        Step(
            f"{status}-{place}",
            "learner",
            hello("learner"),
            fault=Fault("redirect", {"status": status, "target": "self"}),
            healthy=False,
        )
        for status in REDIRECTS
        for place in ("self", "other")
    )
    return [Probe("redirects", named, perform=_redirected_named)]


def _redirected_named(check: str, probe: Probe, subject: Subject, context: Context) -> dict:
    return _redirected(check, Probe(probe.name), subject, context)


def _echoes(profile: Profile) -> list[Probe]:
    said = [
        ("content", Fault("echo", {"place": "content"}), True),
        ("nested", Fault("echo", {"place": "nested"}), True),
    ]
    steps = [Step(f"echo-{n}", "learner", hello("learner", f"Echo {n}."), fault=f, healthy=h) for n, f, h in said]
    steps.append(
        Step("echo-error", "learner", hello("learner", "Echo as error."), fault=Fault("echo_error"), healthy=False)
    )
    return [Probe("echo", tuple(steps), {"record": True})]


def _judge_echoes(views: Views) -> None:
    for exchange in views.wire:
        head, _, body = capturing.raw_bytes(exchange.data["request"]).decode("utf-8", "replace").partition("\r\n\r\n")
        line, *headers = head.split("\r\n")
        holders = [h.partition(":")[0].lower() for h in headers if PREFIX in h]
        if PREFIX in line or PREFIX in body:
            raise Failed("key_in_request", "in the address or the body")
        if set(holders) - {"authorization", "x-api-key", "x-goog-api-key"} or len(holders) > 1:
            raise Failed("key_in_request", f"in the headers {', '.join(holders)}")
    for seen in views.all:
        story = {k: v for k, v in seen.data.items() if k in ("failure", "lost", "error", "end")}
        if PREFIX in str(story):
            raise Failed("key_in_error", seen.step.name)
        if seen.reply is not None and PREFIX in str(seen.reply.to_dict()):
            raise Failed("key_in_reply", seen.step.name)
    if views.capture["cassette"]["canary"]:
        raise Failed("key_in_cassette", ", ".join(views.capture["cassette"]["canary"]))
    _echoed_at_all(views)


def _echoed_at_all(views: Views) -> None:
    for seen in views.steps:
        response = capturing.raw_bytes(seen.only().data["response"]).decode("utf-8", "replace")
        if PREFIX not in response:
            raise Unseen(f"{seen.step.name}: the control did not get a key that it could echo")


def checks() -> list[Check]:
    """C01 to C04."""
    return [
        Check(
            "C01",
            "each seat asks its own identity, and artefacts label the controls",
            "MUST",
            "seat",
            ("seat_swapped", "wrong_model", "unlabelled"),
            _seats,
            _judge_seats,
        ),
        Check(
            "C02",
            "proxies of the environment are not used",
            "MUST",
            "transport",
            ("proxy_used",),
            lambda p: [Probe("proxy", tuple(Step(s, s, hello(s)) for s in SEATS), perform=_proxied)],
            _judge_proxied,
        ),
        Check(
            "C03",
            "redirects are refused and the credential is not sent on",
            "MUST",
            "transport",
            ("redirect_followed", "credential_resent", "redirect_unclassified"),
            _redirect_steps,
            _judge_redirected,
        ),
        Check(
            "C04",
            "the key stays in the header that carries it",
            "MUST",
            "transport",
            ("key_in_request", "key_in_error", "key_in_reply", "key_in_cassette"),
            _echoes,
            _judge_echoes,
        ),
    ]
