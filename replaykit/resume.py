"""Resume an interrupted recording in place: the recorded beginning is played and checked, the rest goes live.

Nothing that was answered is asked again. A request that was sent and whose answer is nowhere in the file is asked once
more, and counts twice in the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from replaykit import engine, prefix, record, record_many
from replaykit.arm import Arm
from replaykit.cassette import Cassette
from replaykit.errors import UsageError
from replaykit.fleet import Fleet
from replaykit.prompts import Prompts
from replaykit.seating import Seating
from replaykit.store import reader
from replaykit.store.journal import Journal
from replaykit.store.redaction import Redactor


def resume(
    path: Path,
    fleet: Fleet,
    controls: str | None = None,
    arm: Arm | None = None,
    on_request: Callable[[], None] = lambda: None,
) -> record.Recorded:
    """Continue an interrupted cassette to the end of its episode.

    Args:
        path: The cassette; it grows in place, and a torn tail is kept beside it as ``<name>.torn``.
        controls: Labelled controls at the seats; by default those it was recorded with.
        arm: Who sits at the seats; must be the arm and roster it was recorded with.

    Raises:
        UsageError: it is complete, or was recorded with other seats, another fleet or on another engine.
        PrefixDiverged: its beginning does not play as recorded; nothing was asked.
        EvidenceError: it is damaged.
    """
    cassette = reader.read(path)
    if not cassette.interrupted:
        raise UsageError(
            f"{path} is complete: there is nothing to resume ('replaykit fork' goes on from a place in it)"
        )
    _check_begun(cassette)
    runtime = engine.load()
    prefix.check_same_ground(cassette.header, runtime, fleet.digest)
    panel, seed = fleet.panel(cassette.panel), cassette.header["seeds"]["case"]
    prompts = Prompts.of_header(cassette.header)
    with ExitStack() as stack:
        seated = record_many.seats_of(runtime, controls_of(cassette, controls, arm), arm, stack)(panel, seed)
        check_same_seats(cassette.header, prompts.header(seated.header))
        redactor = Redactor(seated.secrets)
        journal = stack.enter_context(Journal.resume(path, redactor))
        behind = _behind(cassette, journal, seated)
        book = prefix.ledger(cassette.requests, _is_asked_again(cassette, seated))
        live = prefix.sources(cassette.requests, seated.sources)
        # A fork's native requests name its parent's models, whoever answers.
        asked = prefix.configured(seated, cassette) if "fork" in cassette.header else seated
        result = prefix.play_on(
            lambda: record.play(runtime, panel, asked, behind, seed, redactor, live, book, on_request, prompts)
        )
    return record.Recorded(path, panel.id, result, book.requests)


def _check_begun(cassette: Cassette) -> None:
    """Refuse a fork that broke off within its parent's part, which the seats must not answer.

    Raises:
        UsageError: it did.
    """
    beginning = (cassette.header.get("fork") or {}).get("at", 1) - 1
    copied = [r for r in cassette.requests[:beginning] if r.outcome is not None]
    if len(copied) < beginning:
        raise UsageError(
            f"{cassette.path} is a fork that broke off before anything was asked: remove it and fork its parent again"
        )


def controls_of(cassette: Cassette, controls: str | None, arm: Arm | None) -> str | None:
    """The labelled controls to seat: those that were named, else those of the recording when no arm was named.

    Raises:
        UsageError: both were named, or neither and the recording has none.
    """
    if controls is not None and arm is not None:
        raise UsageError("name the seats with either --arm or --controls, not both")
    if controls is None and arm is None and cassette.header["controls"] is None:
        name = cassette.header["arm"].get("name")
        raise UsageError(f"{cassette.path} was recorded with the arm {name!r}: give its file with --arm")
    return None if arm is not None else controls or cassette.header["controls"]


def check_same_seats(header: dict, now: dict) -> None:
    """Check that the seats are those of the recording.

    Args:
        header, now: ``arm`` and ``roster`` as cassettes hold them.

    Raises:
        UsageError: another learner, or another roster.
    """
    for part, word in (("arm", "learner"), ("roster", "roster")):
        if header[part].get("digest") != now[part]["digest"]:
            raise UsageError(
                f"the {word} is not the one this cassette was recorded with ({header['arm'].get('name')!r}): "
                "resume with the same seats, or use 'replaykit fork'"
            )


def _behind(cassette: Cassette, journal: Journal, seated: Seating) -> prefix.PrefixRecord:
    seam = {
        "kind": "resume",
        "after_request": len(cassette.requests),
        "digest": cassette.digest,
        "asked_again": _is_asked_again(cassette, seated),
        "created_by": record.created_by(),
        "transports": seated.header["transports"],
    }
    return prefix.PrefixRecord(cassette.requests, journal, False, seam, {turn for turn, _ in cassette.states})


def _is_asked_again(cassette: Cassette, seated: Seating) -> bool:
    if not cassette.requests or cassette.requests[-1].outcome is not None:
        return False
    last = cassette.requests[-1]
    return not prefix.is_answered_on_wire(last, seated.sources[last.seat])
