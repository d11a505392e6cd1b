"""One panel: its one-exchange episode, recorded, replayed and provoked, and its own requests with odd settings."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from replaykit import canonical
from replaykit import record as recording
from replaykit.cassette import Cassette
from replaykit.certify import family_b
from replaykit.certify.capture import Bench, Context, plain_exchange
from replaykit.certify.control import RoutedProvider
from replaykit.certify.family_d import SYNTHETIC
from replaykit.certify.finding import Failed, Unseen
from replaykit.certify.masking import Canary
from replaykit.certify.probe import Probe, Step, hello, with_twins
from replaykit.certify.profile import Profile
from replaykit.certify.subject import Subject
from replaykit.certify.views import Exchange, Seen, Views
from replaykit.controls import identities
from replaykit.engine.protocol import Engine, SeatModels
from replaykit.episode import EpisodeResult, LostTurn, TurnLost
from replaykit.errors import InternalError, OfflineViolation, ReplaykitError
from replaykit.fleet import Fleet, Panel
from replaykit.seating import Seating
from replaykit.seats import SEATS, SeatReply, SeatRequest
from replaykit.settings import TAU3_TEXT_1
from replaykit.store import reader
from replaykit.store.redaction import Redactor

NONCE_MEMBER = "control"


def case_name(panel_id: str, part: str) -> str:
    """The case of a panel at the control provider."""
    return f"panel-{panel_id.replace('/', '-')}-{part}"


def file_name(panel_id: str) -> str:
    """The file of a panel's cassette within a run."""
    return f"{panel_id.replace('/', '-')}.cassette.jsonl"


def steps(cassette: Cassette, profile: Profile) -> tuple[Step, ...]:
    """What is asked of a panel beside its episode, from the panel's own native requests."""
    native = {r.seat: r.native for r in reversed(cassette.requests)}
    if "learner" not in native or "customer" not in native:
        raise Unseen("the episode asked no learner or no customer")
    learner, customer = native["learner"], native["customer"]
    model, short = learner.model, hello("learner")
    tools = [*(learner.tools or []), SYNTHETIC]
    own = dict(family_b.SENTINELS)
    found = [
        Step("sentinel-learner", "learner", learner.messages, tools=tools, settings=own),
        Step("sentinel-customer", "customer", customer.messages, settings=own),
        Step("falsy", "learner", short, settings=dict(family_b.FALSY)),
        Step(
            "minimal",
            "learner",
            short,
            settings={"max_output_tokens": 64} if profile.wire == "anthropic-messages" else {},
        ),
        *family_b.unsupported_steps(short),
        *family_b.served_steps(),
    ]
    return tuple(replace(step, model=model) for step in found)


def capture(panel: Panel, subject: Subject, context: Context, engine: Engine, fleet: Fleet, cassettes: Path) -> dict:
    """Perform everything that one panel needs; the cassette also stays in a folder for the replays.

    Returns:
        The capture; where our own machinery failed, one with the member ``error``.
    """
    try:
        return {"panel": panel.id, **_performed(panel, subject, context, engine, fleet, cassettes)}
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, ReplaykitError, Unseen) as error:
        return {"panel": panel.id, "error": f"{type(error).__name__}: {error}"}


def _performed(panel: Panel, subject: Subject, context: Context, engine: Engine, fleet: Fleet, cassettes: Path) -> dict:
    path = cassettes / file_name(panel.id)
    with shared_provider(context) as context:
        wire = Episode(panel, subject, context, engine, fleet, path).record()
        cassette = subject.layer.read(path)
        probe = Probe("settings", steps(cassette, context.profile))
        with Bench(case_name(panel.id, "settings"), with_twins(probe), {}, subject, context) as bench:
            bench.ask_all()
            asked = bench.capture()
        before = len(context.provider.journal)
        misses = provoked(cassette, subject, engine, fleet)
        fell_through = len(context.provider.journal) - before
    return {
        "episode": wire,
        "settings": {"probe": probe.name, "check": "panel", **asked},
        "cassette": Canary(context.key(case_name(panel.id, "episode"))).text(path.read_text("utf-8")),
        "misses": misses,
        "fell_through": fell_through,
        "dropped_settings": sorted(set(context.profile.not_carried) & set(family_b.SENTINELS)),
    }


@contextmanager
def shared_provider(context: Context) -> Iterator[Context]:
    """The context with one provider for everything inside the block."""
    if context.provider is not None:
        yield context
        return
    with RoutedProvider(entropy=context.entropy) as provider:
        yield replace(context, provider=provider)


class Episode:
    """The recording of one episode on one-exchange controls, at the context's provider."""

    def __init__(
        self,
        panel: Panel,
        subject: Subject,
        context: Context,
        engine: Engine,
        fleet: Fleet,
        path: Path,
        case: str | None = None,
    ) -> None:
        self.panel, self.subject, self.context, self.engine, self.fleet, self.path = (
            panel,
            subject,
            context,
            engine,
            fleet,
            path,
        )
        self.case = case or case_name(panel.id, "episode")
        self.key = context.key(self.case)

    def record(self) -> list[dict]:
        """Record it; what the control saw."""
        provider = self.context.provider
        if provider is None:
            raise InternalError("an episode is recorded at a provider")
        hosts = identities.one_exchange(NONCE_MEMBER)
        provider.add_case(self.case, hosts, key=self.context.demanded_key(self.case))
        redactor, began = Redactor((self.key,)), time.monotonic()
        with self.subject.layer.sender() as sender:
            seated = self._seating(provider, sender, hosts)
            header = recording.header(self.engine, self.fleet, self.panel, seated, self.panel.seeds.case)
            with self.subject.layer.journal(self.path, header, redactor) as journal:
                recording.play(self.engine, self.panel, seated, journal, self.panel.seeds.case, redactor)
        provider.settle(2.0)
        return [plain_exchange(e, Canary(self.key), began) for e in provider.journal if e.case == self.case]

    def _seating(self, provider: RoutedProvider, sender: Any, hosts: dict) -> Seating:
        wire, sources = self.context.profile.wire, {}
        for seat in SEATS:
            url = self.subject.base_url or provider.base_url(self.case, seat, wire)
            sources[seat] = _Routed(self.subject.source(url, self.key, sender), provider, self.case)
        roster = self.fleet.rosters[self.panel.roster]
        named = {
            seat: (identity.model, dict(identity.arguments))
            for seat, identity in (("customer", roster.customer), ("judge", roster.judge))
        }
        models = SeatModels(named["customer"], named["customer"], named["judge"])
        labels = {s: self.subject.layer.label(h) for s, h in hosts.items()}
        header = {
            "arm": {"name": "certification", "learner": labels["learner"] | {"model": models.learner[0]}},
            "roster": {"customer": labels["customer"], "judge": labels["judge"]},
            "controls": "one-exchange",
            "transports": dict.fromkeys(SEATS, self.subject.identity()),
        }
        return Seating(sources, models, header, (self.key,))


class _Routed:
    """A source that tells a shared provider whom the next request is for."""

    def __init__(self, source: Any, provider: RoutedProvider, case: str) -> None:
        self._source, self._provider, self._case = source, provider, case

    def ask(self, request: Any, on_exchange: Any) -> SeatReply:
        """Route, then ask."""
        self._provider.route = (self._case, request.seat)
        return self._source.ask(request, on_exchange)

    def identity(self) -> dict:
        """The source's own."""
        return self._source.identity() if hasattr(self._source, "identity") else {}


def _changed_message(request: SeatRequest) -> SeatRequest:
    last = request.messages[-1]
    return replace(request, messages=[*request.messages[:-1], last | {"content": f"{last['content']} "}])


def _changed_setting(request: SeatRequest) -> SeatRequest:
    return replace(request, arguments=request.arguments | {"temperature": 0})


def _changed_tool(request: SeatRequest) -> SeatRequest:
    if not request.tools:
        return request
    function = request.tools[0]["function"]
    parameters = function["parameters"] | {"default": 1}
    return replace(
        request, tools=[{"type": "function", "function": function | {"parameters": parameters}}, *request.tools[1:]]
    )


def _changed_order(request: SeatRequest) -> SeatRequest:
    if not request.tools:
        return request
    first = request.tools[0]
    return replace(request, tools=[dict(reversed(first.items())), *request.tools[1:]])


def _changed_model(request: SeatRequest) -> SeatRequest:
    return replace(request, model=request.model + "-x")


@dataclass(frozen=True)
class _Altered:
    """An engine whose native requests differ in one thing, or that stops asking early."""

    engine: Engine
    change: Callable[[SeatRequest], SeatRequest]
    stop_at: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def run(
        self,
        domain: str,
        scenario_id: str,
        seed: int,
        models: SeatModels,
        ask: Callable[[SeatRequest], SeatReply],
        *limits: Any,
    ) -> EpisodeResult:
        """Run with the change."""

        def asked(request: SeatRequest) -> SeatReply:
            if self.stop_at is not None and request.number >= self.stop_at:
                raise TurnLost(LostTurn(request.seat, request.number, "stopped", "agent_error"))
            return ask(self.change(request))

        return self.engine.run(domain, scenario_id, seed, models, asked, *limits)


CHANGES: dict[str, tuple[Callable[[SeatRequest], SeatRequest], int | None, str]] = {
    "message": (_changed_message, None, "/messages/"),
    "setting": (_changed_setting, None, "/arguments/temperature"),
    "tool-default": (_changed_tool, None, "/tools/0/function/parameters"),
    "key-order": (_changed_order, None, "/tools/0"),
    "model": (_changed_model, None, "/model"),
    "left-over": (lambda request: request, 2, ""),
}


def provoked(cassette: Cassette, subject: Subject, engine: Engine, fleet: Fleet) -> dict[str, dict]:
    """Replays in which one thing is changed: what each said."""
    said = {}
    for name, (change, stop_at, _) in CHANGES.items():
        try:
            report = subject.layer.replay(cassette, _Altered(engine, change, stop_at), fleet, name)
        except OfflineViolation:
            said[name] = {"status": "opened_socket", "first": None}
            continue
        first = report.divergences[0] if report.divergences else None
        kinds = [d.kind for d in report.divergences]
        said[name] = {"status": report.status, "first": first.pointer if first else None, "kinds": kinds}
    return said


class PanelViews(Views):
    """The capture of one panel, read again: its requests, its cassette, its replays.

    Args:
        judged: Whether the panel needs the judge; None: unknown without the fleet.
        tools_digest: Digest of the panel's tools; None: unknown without the fleet.
    """

    def __init__(self, capture: dict, profile: Profile, judged: bool | None, tools_digest: str | None) -> None:
        self.cassette = reader.parse(capture["cassette"].encode("utf-8", "surrogatepass"))
        super().__init__(Probe("settings", steps(self.cassette, profile)), capture["settings"], profile)
        self.capture = capture | {"dropped_settings": capture["dropped_settings"]}
        self._judged, self._tools = judged, tools_digest
        self._episode = [Exchange(e, profile.wire) for e in capture["episode"]]

    def episode_requests(self) -> list[Seen]:
        """The requests of the episode with what the control saw of each."""
        if len(self._episode) != len(self.cassette.requests):
            raise Failed(
                "log_disagrees",
                f"{len(self.cassette.requests)} requests recorded, {len(self._episode)} seen by the control",
            )
        return [self._episode_request(r, e) for r, e in zip(self.cassette.requests, self._episode, strict=True)]

    def common(self) -> int:
        """The common rules for the panel's own requests and for its episode."""
        from replaykit.certify import views

        count = views.common(self)
        for seen in self.episode_requests():
            exchange = seen.wire[0]
            reply = seen.reply
            if reply is None or not exchange.whole or reply.id not in exchange.reply_ids():
                raise Failed("not_delivered", f"the {exchange.seat}'s request {exchange.number} of the episode")
            if exchange.seat != seen.step.seat:
                raise Failed("seat_swapped", exchange.seat)
        self._of_this_panel()
        return count + len(self._episode)

    def judge_diagnostic(self) -> None:
        """Check that the empty list of results is named, exactly where a judge was asked.

        Raises:
            Failed: ``judge_diagnostic``.
        """
        result = self.cassette.result
        if result is None:
            raise Unseen("the episode did not end")
        named = any(d.name == "judge.all_true_default" for d in result.diagnostics)
        asked = any(r.seat == "judge" for r in self.cassette.requests)
        if named != asked or (self._judged is not None and asked != self._judged):
            raise Failed("judge_diagnostic", f"judge asked: {asked}, all-true default named: {named}")

    def _of_this_panel(self) -> None:
        learner = next((r.native for r in self.cassette.requests if r.seat == "learner"), None)
        if self._tools is not None and learner is not None and canonical.ordered_digest(learner.tools) != self._tools:
            raise Failed("foreign_panel", "the learner was offered other tools than the panel's")
        if self.cassette.panel != self.capture["panel"]:
            raise Failed("foreign_panel", self.cassette.panel)

    def _episode_request(self, recorded: Any, exchange: Exchange) -> Seen:
        native = recorded.native
        expected = {
            "temperature": TAU3_TEXT_1.temperature,
            "top_p": TAU3_TEXT_1.top_p,
            "max_output_tokens": TAU3_TEXT_1.output_tokens[native.seat],
        }
        if native.seat != "judge" and native.arguments.get("seed") is not None:
            expected["seed"] = native.arguments["seed"]
        step = Step(f"episode-{recorded.number}", native.seat, native.messages, tools=native.tools, expect=expected)
        outcome = recorded.outcome
        data: dict[str, Any] = {"exchanges": []}
        if isinstance(outcome, SeatReply):
            data["reply"] = outcome.to_dict()
        return Seen(step, data, [exchange])


def temporary() -> tempfile.TemporaryDirectory:
    """A folder for the cassettes of a run."""
    return tempfile.TemporaryDirectory(prefix="replaykit-certify-")
