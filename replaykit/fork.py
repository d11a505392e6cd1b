"""Fork an episode: a new cassette that plays a recording up to a request and goes live from there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from replaykit import canonical, engine, prefix, record, record_many
from replaykit.arm import Arm
from replaykit.cassette import SUFFIXES, Cassette, RecordedRequest
from replaykit.errors import PrefixDiverged, UsageError
from replaykit.fleet import Fleet
from replaykit.prompts import Prompts
from replaykit.resume import controls_of
from replaykit.seats import SeatReply
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor


def fork(
    path: Path,
    at: int,
    fleet: Fleet,
    controls: str | None = None,
    arm: Arm | None = None,
    out: Path | None = None,
    on_request: Callable[[], None] = lambda: None,
    prompt: str | None = None,
) -> record.Recorded:
    """Record a child of a cassette.

    tau2 stays configured as in the parent, so native requests before the seam are the parent's to the byte and those
    behind it name the parent's model; what was really asked stands in the child's header and wire.

    Args:
        at: Number of the first request that goes live; those before it are answered from the parent.
        controls, arm: Who answers from there; by default the parent's controls.
        out: The child's file; by default beside the parent.
        prompt: The learner's system prompt from there on; by default as in the parent at that place.

    Raises:
        UsageError: no such request, an empty prompt, or the ground is not the parent's (fleet, engine).
        PrefixDiverged: the beginning does not play as recorded; nothing was asked.
        EvidenceError: the parent is damaged.
    """
    parent = reader.read(path)
    requests = _beginning(parent, at)
    if prompt is not None:
        _check_prompt(prompt)
    prompts = Prompts.of_header(parent.header).forked(at, prompt)
    runtime = engine.load()
    prefix.check_same_ground(parent.header, runtime, fleet.digest)
    panel, seed = fleet.panel(parent.panel), parent.header["seeds"]["case"]
    with ExitStack() as stack:
        kind = controls_of(parent, controls, arm)
        seated = record_many.seats_of(runtime, kind, arm, stack)(panel, seed)
        redactor = Redactor(seated.secrets)
        target = out or child_path(path, at, seated.arm_name)
        seam = {"parent": parent.digest, "parent_name": path.name, "at": at}
        configured = prefix.configured(seated, parent)
        header = record.header(runtime, fleet, panel, seated, seed) | {"fork": seam}
        header = prompts.header(header | {"configured": configured.models.to_dict()})
        journal = stack.enter_context(Journal.create(target, header, redactor))
        noted = {"kind": "fork", **seam} | ({} if prompt is None else {"prompt": canonical.sha256(prompt.encode())})
        behind = prefix.PrefixRecord(requests, journal, True, noted)
        book, live = prefix.ledger(requests, False), prefix.sources(requests, seated.sources)
        try:
            result = prefix.play_on(
                lambda: record.play(runtime, panel, configured, behind, seed, redactor, live, book, on_request, prompts)
            )
        except PrefixDiverged:
            target.unlink()  # it holds copies of the parent's records only
            raise
    return record.Recorded(target, panel.id, result, book.requests)


def _check_prompt(prompt: str) -> None:
    """Check that a prompt may be asked with and kept.

    Raises:
        UsageError: it may not.
    """
    if not prompt.strip():
        raise UsageError("the prompt is empty: tau2 refuses a system message without text")
    if Redactor().text(prompt) != prompt:
        raise UsageError("the prompt holds what looks like a key or a password, and a cassette keeps it: take it out")


def child_path(path: Path, at: int, arm_name: str) -> Path:
    """Where a child goes when nothing else is said: beside its parent."""
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if path.name.endswith(s)), SUFFIXES[0])
    return path.with_name(f"{path.name.removesuffix(suffix)}-fork{at}-{arm_name}{suffix}")


def _beginning(parent: Cassette, at: int) -> tuple[RecordedRequest, ...]:
    """The requests before the seam.

    Raises:
        UsageError: there is no such request, or one before it has no reply.
    """
    count = len(parent.requests)
    if not 1 <= at <= count:
        raise UsageError(f"{parent.path} holds requests 1 to {count}: --at {at} is none of them")
    requests = parent.requests[: at - 1]
    silent = next((r for r in requests if not isinstance(r.outcome, SeatReply)), None)
    if silent is not None:
        number = silent.number
        raise UsageError(
            f"request {number} of {parent.path} got no reply, so nothing follows it: use --at {number} or less"
        )
    return requests
