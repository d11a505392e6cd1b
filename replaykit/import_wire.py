"""Import the wire: a vcrpy cassette is played as an episode of a panel.

It holds HTTP and nothing of tau2. So tau2 asks its seats, and each request is answered by the next interaction, read by
the transport that speaks its wire. The wire is what was recorded; native requests, tools, database and verdicts are
derived by the engine in use, and labelled so.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from replaykit import canonical, engine, policy_record, record, settings, transports
from replaykit.arm import arm_header
from replaykit.budget import Budget, Ledger
from replaykit.engine import pins
from replaykit.engine.protocol import Engine, SeatModels
from replaykit.episode import Diagnostic, EpisodeResult
from replaykit.errors import UsageError
from replaykit.fleet import Fleet, Panel
from replaykit.fleet_build import trial_seed
from replaykit.gateway import Gateway
from replaykit.interchange import vcr_file
from replaykit.interchange.vcr_file import Interaction
from replaykit.offline import offline
from replaykit.seats import SEATS, NotRecorded, SeatFailure, SeatReply, TransportRequest, WireExchange
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor

DERIVED = {
    "native_requests": "built by this engine from the recorded replies",
    "tool_results": "computed by this engine",
    "database": "computed by this engine",
    "policy_states": "computed from the derived trajectory",
    "verdicts": "evaluated by this engine",
}


class _Refused(BaseException):
    """The file is not of this episode. Not an Exception, so that tau2 does not swallow it."""


@dataclass(slots=True)
class WireReplies:
    """Answers each request with the next interaction.

    Attributes:
        interactions: Number in the file (from 1), wire and interaction of each that speaks a known wire.
        used: How many were taken.
        findings: Where what was sent then does not hold what would be asked now.
    """

    interactions: list[tuple[int, str, Interaction]]
    path: Path
    used: int = 0
    findings: list[Diagnostic] = field(default_factory=list)

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """The next recorded reply; a failed attempt that was repeated is followed by the next one.

        Raises:
            SeatFailure: the recorded attempts all failed.
            NotRecorded: the file ends here.
            _Refused: the interaction belongs to another seat or another panel.
        """
        attempt = 0
        while self.used < len(self.interactions):
            number, wire, interaction = self.interactions[self.used]
            attempt += 1
            self._check(number, interaction, request)
            self.used += 1
            try:
                reply, failure = _read(wire, interaction, request), None
            except SeatFailure as error:
                reply, failure = None, error
            about = failure.to_dict() if failure else None
            on_exchange(WireExchange(attempt, interaction.request, interaction.response, about))
            if reply is not None:
                return reply
            if not self._is_repeated(interaction):
                raise failure  # type: ignore[misc]
        raise NotRecorded("unexpected_error" if request.seat != "judge" else None)

    def _is_repeated(self, interaction: Interaction) -> bool:
        following = self.interactions[self.used] if self.used < len(self.interactions) else None
        return following is not None and following[2].request["body"] == interaction.request["body"]

    def _check(self, number: int, interaction: Interaction, request: TransportRequest) -> None:
        body = _body(interaction)
        if bool(body.get("tools")) != bool(request.tools):
            carries = "carries tools" if body.get("tools") else "carries no tools"
            raise _Refused(
                f"interaction {number} {carries}, but request {request.number} goes to the {request.seat}: "
                "the file does not hold this episode, or not all of it"
            )
        texts = _texts(body)
        for index, message in enumerate(request.messages):
            text = message.get("content")
            if not text or text in texts:
                continue
            if message["role"] == "system":
                raise _Refused(
                    f"interaction {number} does not hold the {request.seat}'s instructions for this panel: "
                    "name the panel it was recorded on with --panel"
                )
            about = {"interaction": number, "request": request.number, "seat": request.seat}
            pointer = canonical.pointer("messages", index, "content")
            self.findings.append(Diagnostic("import.wire_request_differs", {**about, "pointer": pointer}))
            return


def _read(wire: str, interaction: Interaction, request: TransportRequest) -> SeatReply:
    answer, place = interaction.response, urlsplit(interaction.request["uri"])
    transport = transports.load(wire)(f"{place.scheme}://{place.netloc}", None, None, None)
    return transport.from_wire(answer["status"]["code"], answer["headers"], answer["body"], request)


_PATHS = (
    ("/chat/completions", "openai-chat"),
    ("/responses", "openai-responses"),
    ("/messages", "anthropic-messages"),
    (":generateContent", "gemini-generate"),
)


def wire_of(interaction: Interaction) -> str | None:
    """The wire an interaction speaks, by its address, or None."""
    if interaction.request["method"] != "POST":
        return None
    path = urlsplit(interaction.request["uri"]).path
    return next((wire for ending, wire in _PATHS if path.endswith(ending)), None)


def _body(interaction: Interaction) -> dict:
    try:
        return members(json.loads(interaction.request["body"]))
    except (ValueError, RecursionError):
        return {}


def _texts(value: Any) -> set[str]:
    """Every text in a JSON value."""
    found, rest = set(), [value]
    while rest:
        part = rest.pop()
        if isinstance(part, str):
            found.add(part)
        elif isinstance(part, (dict, list)):
            rest.extend(part.values() if isinstance(part, dict) else part)
    return found


def import_vcr(path: Path, fleet: Fleet, panel_id: str | None, case_seed: int | None, out: Path) -> EpisodeResult:
    """Play a vcrpy cassette as an episode and keep it as a cassette.

    Args:
        panel_id: The panel; None: as the file says, when it was exported from a cassette.
        case_seed: The case seed; None: as the file says, else 300.
        out: The cassette to write.

    Raises:
        UsageError: the file cannot be read, names no panel, or holds another episode; nothing is written then.
    """
    file = vcr_file.read(path)
    panel = fleet.panel(_panel_of(file, panel_id, path))
    seed = _seed_of(file, case_seed)
    known = [(n, wire, i) for n, i in enumerate(file.interactions, 1) if (wire := wire_of(i)) is not None]
    if not known:
        raise UsageError(f"{path} holds no request of a wire known here: nothing in it can answer a seat")
    source = WireReplies(known, path)
    runtime, asked = engine.load(), _models(file, known)
    rules = settings.TAU3_TEXT_1 if file.about.get("settings") == settings.VERSION else settings.OPEN
    header = _header(runtime, fleet, panel, seed, asked, rules) | {
        "imported": {
            "kind": "vcr",
            "file": path.name,
            "file_digest": file.digest,
            "interactions": len(file.interactions),
        }
    }
    with Journal.create(out, header, Redactor()) as journal:
        try:
            return _play(runtime, panel, seed, asked, rules, source, journal, len(file.interactions) - len(known))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                out.unlink()  # made here a moment ago; half an import is no recording
            raise


def _play(
    runtime: Engine,
    panel: Panel,
    seed: dict,
    asked: SeatModels,
    rules: settings.TransportSettings,
    source: WireReplies,
    journal: Journal,
    ignored: int,
) -> EpisodeResult:
    keeping = record.Keeping(journal)
    cleaned = record.CleanReplies(source, Redactor(), lambda request: None)
    ledger = Ledger(Budget(requests=len(source.interactions) + 2), lambda: 0.0)
    gateway = Gateway(dict.fromkeys(SEATS, cleaned), keeping, ledger, rules, lambda: 0.0)
    try:
        with offline():
            result = runtime.run(panel.domain, panel.scenario, seed["trial"], asked, gateway.ask)
    except _Refused as refused:
        raise UsageError(f"{source.path}: {refused}") from refused
    found = [*result.diagnostics, *gateway.diagnostics, *source.findings]
    unused = len(source.interactions) - source.used
    counts = {"import.interactions_ignored": ignored, "import.interactions_unused": unused}
    found += [Diagnostic(name, {"count": count}) for name, count in counts.items() if count]
    result = replace(result, diagnostics=found)
    states = policy_record.final(runtime, panel, result)
    for state in states["turns"][:-1]:
        journal.state(state["turn"], state["digest"])
    journal.close({"result": result.to_dict(), "policy_states": states, "usage": keeping.tally.seats})
    return result


def _header(
    runtime: Engine, fleet: Fleet, panel: Panel, seeds: dict, asked: SeatModels, rules: settings.TransportSettings
) -> dict:
    learner, customer, judge = (
        {"transport": "unknown", "model": getattr(asked, seat)[0], "arguments": getattr(asked, seat)[1]}
        for seat in SEATS
    )
    return {
        "panel": panel.id,
        "fleet_digest": fleet.digest,
        "engine": runtime.identity.to_dict(),
        "settings": rules.to_dict(),
        "budget": None,
        **arm_header("vcr", learner, customer, judge),
        "controls": None,
        "seeds": seeds,
        "limits": {"steps": pins.MAX_STEPS, "errors": pins.MAX_ERRORS},
        "derived": DERIVED,
        "unknown": ["retries", "budget", "who sat at the seats, beyond the model names on the wire"],
        "created_by": record.created_by(),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def members(value: Any) -> dict:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _panel_of(file: vcr_file.VcrFile, named: str | None, path: Path) -> str:
    panel = named or file.about.get("panel")
    if not isinstance(panel, str):
        raise UsageError(
            f"{path} does not say which panel it was recorded on: name it with --panel, e.g. --panel airline/0"
        )
    return panel


def _seed_of(file: vcr_file.VcrFile, case_seed: int | None) -> dict:
    held = members(file.about.get("seeds"))
    if case_seed is None and all(type(held.get(key)) is int for key in ("case", "trial")):
        return {key: held[key] for key in ("case", "trial")}
    case = pins.DEFAULT_CASE_SEED if case_seed is None else case_seed
    return {"case": case, "trial": trial_seed(case)}


def _models(file: vcr_file.VcrFile, known: list[tuple[int, str, Interaction]]) -> SeatModels:
    """What tau2 is configured with: as the file says, else the models on the wire; the judge's is unknown then."""
    held = members(file.about.get("models"))
    seats: dict[str, tuple[str, dict]] = {"judge": ("unknown", {})}
    for _, _, interaction in known:
        body = _body(interaction)
        arguments = {"temperature": body["temperature"]} if "temperature" in body else {}
        seats.setdefault("learner" if body.get("tools") else "customer", (str(body.get("model", "unknown")), arguments))
    for seat in SEATS:
        pair = held.get(seat)
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], dict):
            seats[seat] = (pair[0], pair[1])
    return SeatModels(*[seats.get(seat, ("unknown", {})) for seat in SEATS])
