"""Scores from cassettes: trials are read from headers and footers, the figures are `scoring`'s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from replaykit import canonical, cluster, policy, scoring
from replaykit.cassette import Cassette, CassetteSummary
from replaykit.errors import EvidenceError, ReplaykitError, UsageError
from replaykit.fleet import Fleet
from replaykit.policy.labels import document_bytes
from replaykit.scoring import Trial
from replaykit.scoring.panels import panel_order
from replaykit.scoring.tally import Tally, use_of
from replaykit.seats import SEATS
from replaykit.store import reader, remote, scan

SCHEMA = "replaykit.score/1"


class NotScored(Exception):
    """A cassette that has no score: its message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """A trial with what tells one learner from another of the same name.

    Attributes:
        identity: Digest of the learner, or the label of the control that stood in for it.
    """

    trial: Trial
    identity: str


@dataclass(frozen=True, slots=True)
class Found:
    """What was read.

    Attributes:
        trials: Finished episodes.
        not_scored: ``{"path", "reason"}`` of cassettes without a score, interrupted recordings above all.
        unreadable: ``{"path", "error", "exit_code"}`` of files that could not be read.
        fleet: The fleet that gave the sampling components.
        labels: The label document, or None.
    """

    trials: tuple[Trial, ...]
    not_scored: tuple[dict, ...]
    unreadable: tuple[dict, ...]
    fleet: Fleet
    labels: Mapping[str, Any] | None

    @property
    def exit_code(self) -> int:
        """0, or 3 where a cassette has no score, or what an unreadable file ends a command with."""
        codes = [entry["exit_code"] for entry in self.unreadable]
        return max(codes, default=3 if self.not_scored else 0)


def find(paths: Iterable[Path]) -> list[Path]:
    """Cassettes below the paths.

    Raises:
        UsageError: a path does not exist, or there is none below them.
    """
    files = reader.find(paths)
    if not files:
        raise UsageError(f"there is no cassette (*.cassette.jsonl) below {', '.join(map(str, paths))}")
    return files


def read(files: Iterable[Path], fleet: Fleet, labels: Mapping[str, Any] | None, watch: Any = None) -> Found:
    """Read the trials of cassettes; one that cannot be read does not stop the others.

    Args:
        labels: The label document (`labels_build.read_labels`), or None: tasks have no label.
        watch: Told when a cassette is done (`step(errors=bool)`).
    """
    return _found([_watched(_attempt(path, fleet, labels), watch) for path in files], fleet, labels)


def read_on(
    address: str,
    files: Sequence[Path],
    fleet: Fleet,
    labels: Mapping[str, Any] | None,
    watch: Any = None,
    tell: Callable[[str], None] = print,
) -> Found:
    """As `read`, on the workers of a cluster; they read the files themselves, by path or URL.

    Raises:
        UsageError, ClusterUnavailable, EngineNotReady, Incomplete: as `cluster.each` does.
    """
    pieces = [cluster.Piece(str(path), (remote.url_of(path), labels)) for path in files]
    terms = cluster.Terms.of(fleet.digest, with_engine=False)
    attempts: dict[int, Source | dict] = {}
    for position, result in cluster.each(address, attempt_there, pieces, terms, tell):
        if isinstance(result, cluster.Failed):
            result = {"error": result.sentence, "exit_code": result.exit_code}
        if isinstance(result, dict):
            result = {"path": str(files[position]), **{k: v for k, v in result.items() if k != "path"}}
        attempts[position] = _watched(result, watch)
    return _found([attempts[position] for position in range(len(files))], fleet, labels)


def attempt_there(url: str, labels: Mapping[str, Any] | None) -> Source | dict:
    """Read one trial on a worker."""
    return _attempt(remote.located(url), cluster.own_fleet(), labels)


def _attempt(path: Path, fleet: Fleet, labels: Mapping[str, Any] | None) -> Source | dict:
    """A trial, or why there is none."""
    try:
        return trial(path, fleet, labels)
    except NotScored as reason:
        return {"path": str(path), "reason": str(reason)}
    except ReplaykitError as error:
        return {"path": str(path), "error": str(error), "exit_code": error.exit_code}


def _watched(attempt: Source | dict, watch: Any) -> Source | dict:
    if watch is not None:
        watch.step(errors=isinstance(attempt, dict))
    return attempt


def _found(attempts: Sequence[Source | dict], fleet: Fleet, labels: Mapping[str, Any] | None) -> Found:
    sources = [a for a in attempts if not isinstance(a, dict)]
    not_scored = tuple(a for a in attempts if isinstance(a, dict) and "reason" in a)
    unreadable = tuple(a for a in attempts if isinstance(a, dict) and "error" in a)
    return Found(_with_distinct_arms(sources), not_scored, unreadable, fleet, labels)


def trial(path: Path, fleet: Fleet, labels: Mapping[str, Any] | None) -> Source:
    """One cassette as a trial. Its header and footer are enough; one from before footers said so is read whole.

    Raises:
        NotScored: the recording is interrupted, or holds no policy states.
        UsageError: there is no such file, or its panel is not in the fleet.
        EvidenceError: it is damaged.
    """
    summary = scan.scan(path)
    if summary.interrupted:
        raise NotScored("the recording is interrupted: 'replaykit resume' goes on with it")
    fleet.panel(summary.panel)
    try:
        return _trial(summary, fleet, labels)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EvidenceError(f"header and footer are not those of an episode ({error!r})", path) from error


def document(found: Found, ks: Sequence[int], arms: tuple[str, str] | None = None, level: float = 0.95) -> dict:
    """All figures as one document.

    Args:
        ks: The k of the reliability figures.
        arms: Two arms to compare, or None.
        level: Confidence level of the comparison's interval.

    Returns:
        ``{"schema", "fleet_digest", "labels", "rows", "components", "transfer_confusion", "not_scored", "unreadable"}``
        and with ``arms`` ``comparison``; rows are those of `scoring.score_panels`.

    Raises:
        UsageError: a k is below 1, or the arms cannot be compared.
    """
    rows = scoring.score_panels(found.trials, ks)
    whole = {
        "schema": SCHEMA,
        "fleet_digest": found.fleet.digest,
        "labels": None if found.labels is None else _of_labels(found.labels),
        "rows": rows,
        "components": _components(found.trials),
        "transfer_confusion": _confusion(rows),
        "not_scored": list(found.not_scored),
        "unreadable": list(found.unreadable),
    }
    return whole if arms is None else whole | {"comparison": comparison(found.trials, arms, level)}


def comparison(trials: Iterable[Trial], arms: tuple[str, str], level: float = 0.95) -> dict:
    """Two arms panel by panel (`scoring.compare_arms`), with ``interval``, or ``{"refused": why}`` in its place.

    Raises:
        UsageError: the arms cannot be compared; it names what differs.
    """
    compared = scoring.compare_arms(trials, *arms)
    if not 0.0 < level < 1.0:
        raise UsageError(f"the confidence level {level} is not between 0 and 1")
    try:
        interval: dict = scoring.component_interval(compared, level)
    except UsageError as refusal:
        interval = {"refused": str(refusal)}
    return compared | {"interval": interval}


def _trial(summary: CassetteSummary, fleet: Fleet, labels: Mapping[str, Any] | None) -> Source:
    header, ending = summary.header, summary.summary
    counts, usage = _conduct(summary)
    source = Trial(
        panel=summary.panel,
        arm=_text(header["arm"]["name"]),
        roster_digest=_text(header["roster"]["digest"]),
        fleet_digest=_text(header["fleet_digest"]),
        settings=_members(header["settings"]),
        engine=_members(header["engine"]),
        component=fleet.panel(summary.panel).component,
        case_seed=_seed(header["seeds"]),
        reward=_reward(ending["reward"]),
        termination=_text(ending["termination"]),
        transferred=_flag(counts["transferred"]),
        label=_label(labels, summary.panel),
        violations=_counts(counts["violations"]),
        format_errors=_counts(counts["format_errors"]),
        diagnostics=tuple(map(_text, ending["diagnostics"])),
        requests={seat: usage[seat]["requests"] for seat in SEATS},
        seats={seat: use_of(usage[seat]) for seat in SEATS},
        source=str(summary.path),
        controls=None if header["controls"] is None else _text(header["controls"]),
    )
    return Source(source, _identity(header["arm"]))


def _identity(arm: Mapping[str, Any]) -> str:
    """A control says another thing on each panel, so its label identifies it; any other learner has one digest."""
    control = arm["learner"].get("control")
    return _text(control["label"] if control else arm["digest"])


def _conduct(summary: CassetteSummary) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What the learner did and what the seats used, from the footer, or from the whole cassette where it is silent."""
    fields = (summary.footer or {})["fields"]
    usage = fields.get("usage") or {}
    if "policy_counts" in fields and all("maybe_charged" in usage.get(seat, {}) for seat in SEATS):
        return fields["policy_counts"], usage
    return _from_whole(reader.read(summary.path))


def _from_whole(cassette: Cassette) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    states = (cassette.footer or {}).get("policy_states")
    if not states:
        raise NotScored("the cassette holds no policy states")
    tally = Tally.of((request.seat, request.outcome) for request in cassette.requests)
    return policy.counts(states["final"]), tally.seats


def _with_distinct_arms(sources: Sequence[Source]) -> tuple[Trial, ...]:
    """Two learners under one name are two arms: their names get a piece of their identities."""
    names = Counter(name for name, _ in {(s.trial.arm, s.identity) for s in sources})
    return tuple(
        s.trial if names[s.trial.arm] == 1 else replace(s.trial, arm=f"{s.trial.arm}@{s.identity[:8]}") for s in sources
    )


def _label(labels: Mapping[str, Any] | None, panel: str) -> dict | None:
    domain, _, scenario = panel.partition("/")
    entry = None if labels is None else labels["domains"].get(domain, {}).get(scenario)
    return None if entry is None else {"y": entry["y"], "rule": entry["rule"]}


def _of_labels(labels: Mapping[str, Any]) -> dict:
    return {"revision": labels.get("revision"), "sha256": canonical.sha256(document_bytes(labels))}


def _components(trials: Iterable[Trial]) -> dict[str, list[str]]:
    """Panels by sampling component; those of one component share a database and are not independent."""
    panels: dict[str, set[str]] = {}
    for one in trials:
        panels.setdefault(one.component, set()).add(one.panel)
    return {name: sorted(panels[name], key=panel_order) for name in sorted(panels)}


def _confusion(rows: Sequence[Mapping[str, Any]]) -> list[dict]:
    """Counts of panels by label and decision, for each arm under each conditions."""
    groups: dict[tuple[str, str], list[Mapping]] = {}
    for row in rows:
        groups.setdefault((row["arm"], row["conditions_digest"]), []).append(row)
    return [
        {"arm": arm, "conditions_digest": digest} | scoring.confusion_of_panels(groups[arm, digest])
        for arm, digest in sorted(groups)
    ]


def _seed(seeds: Mapping[str, Any]) -> int:
    """The case seed; an imported run may know its trial seed only, or no more than its place among the trials."""
    known = (seeds["case"], seeds["trial"], seeds.get("index"))
    seed = next((seed for seed in known if seed is not None), None)
    if type(seed) is not int:
        raise ValueError("the seed is no whole number")
    return seed


def _reward(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, type(None))):
        raise ValueError("the reward is no number")
    return value


def _counts(value: Any) -> dict[str, int]:
    if not all(isinstance(name, str) and type(count) is int and count >= 0 for name, count in value.items()):
        raise ValueError("what should be counts is none")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _members(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r} is no object")
    return value
