"""Scores for people: one line a panel and arm, what is worth knowing below it, and nothing across panels."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replaykit.reports.untrusted import one_line

_PLAIN = ("component", "conditions_digest", "trials", "graded", "successes", "mean_reward")
_SEATS = ("learner", "customer", "judge")
_CELLS = (
    "should_and_did",
    "should_and_did_not",
    "should_not_and_did",
    "should_not_and_did_not",
    "trials_disagree",
    "no_label",
)
_ACROSS = "No figure is given across panels: each panel is a league of its own."


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The document as lines of text."""
    rows = document["rows"]
    if rows:
        yield from _results(rows)
        yield ""
        yield from _use(rows)
        yield ""
        yield from _together(document)
    if "comparison" in document:
        yield ""
        yield from _comparison(document["comparison"])
    for entry in document["not_scored"]:
        yield f"not scored: {one_line(entry['path'])}: {one_line(entry['reason'])}"
    for entry in document["unreadable"]:
        yield f"ERROR: {one_line(entry['error'])}"


def table_csv(document: Mapping[str, Any]) -> str:
    """The rows as CSV, one line a panel and arm; kinds and seats have columns of their own."""
    records = [_record(row) for row in document["rows"]]
    columns = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _results(rows: Sequence[Mapping]) -> Iterator[str]:
    ks = [figure["k"] for figure in rows[0]["reliability"]]
    counted = ("transfer", "violations", "format errors", "ended")
    figures = ("trials", "successes", "reward", *(f"k={k}" for k in ks), *counted)
    first, *named = _names(rows)
    cells = [(*names, *_cells(row)) for names, row in zip(named, rows, strict=True)]
    head, *table = _table((*first, *figures), cells)
    yield "reward: mean of the panel's trials. k=N: comb(successes, N) / comb(graded trials, N), - where undefined."
    yield "transfer: should the agent hand over / in how many trials it did."
    yield head
    for row, line in zip(rows, table, strict=True):
        yield line
        yield from (f"    {name}: {text}" for name, text in _details(row))


def _names(rows: Sequence[Mapping]) -> list[tuple[str, ...]]:
    """Head and cells that name each row; the conditions too, where panel and arm alone would name two rows."""
    named = [(row["panel"], _arm(row)) for row in rows]
    if len(set(named)) == len(named):
        return [("panel", "arm"), *named]
    digests = [row["conditions_digest"][:8] for row in rows]
    return [("panel", "arm", "conditions"), *((*name, digest) for name, digest in zip(named, digests, strict=True))]


def _table(head: tuple[str, ...], cells: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for line in (head, *cells):
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()


def _cells(row: Mapping) -> tuple[str, ...]:
    return (
        f"{row['trials']}" if row["graded"] == row["trials"] else f"{row['trials']} ({row['graded']} graded)",
        f"{row['successes']}",
        _number(row["mean_reward"]),
        *(_number(figure["value"]) for figure in row["reliability"]),
        _transfer(row["transfer"]),
        f"{sum(row['violations'].values())}",
        f"{sum(row['format_errors'].values())}",
        ", ".join(name if count == row["trials"] else f"{name} {count}" for name, count in row["terminations"].items()),
    )


def _arm(row: Mapping) -> str:
    names = [name for name in row["controls"] if name != row["arm"]]
    mark = f" [controls: {one_line(', '.join(names))}]" if names else " [controls]" if row["controls"] else ""
    return one_line(row["arm"]) + mark


def _transfer(transfer: Mapping) -> str:
    should = {None: "no label", 0: "no", 1: "yes"}[transfer["y"]]
    return f"{should} / {transfer['transferred']} of {transfer['transferred'] + transfer['not_transferred']}"


def _details(row: Mapping) -> Iterator[tuple[str, str]]:
    for name, key in (("violations", "violations"), ("format errors", "format_errors"), ("diagnostics", "diagnostics")):
        if row[key]:
            yield name, _counted(row[key])
    if row["repeated_seeds"]:
        yield "repeated case seeds", ", ".join(map(str, row["repeated_seeds"]))


def _counted(counts: Mapping[str, int]) -> str:
    return one_line(", ".join(f"{name} {count}" for name, count in counts.items()))


def _use(rows: Sequence[Mapping]) -> Iterator[str]:
    yield "What the seats used: requests, tokens (prompt + completion), US dollars; * some replies did not say."
    head, *named = _names(rows)
    cells = [(*names, *(_seat(row, seat) for seat in _SEATS)) for names, row in zip(named, rows, strict=True)]
    yield from _table((*head, *_SEATS), cells)


def _seat(row: Mapping, seat: str) -> str:
    requests, use = row["requests"].get(seat, 0), row["seats"].get(seat)
    if not requests or use is None:
        return "-" if not requests else f"{requests}"
    return f"{requests}  {_tokens(use)}  {_cost(use)}"


def _tokens(use: Mapping) -> str:
    parts = [use["prompt_tokens"], use["completion_tokens"]]
    if parts == ["not reported"] * 2:
        return "tokens not reported"
    return " + ".join(str(part) for part in parts) + ("*" if use["tokens_not_reported"] else "")


def _cost(use: Mapping) -> str:
    if use["cost"] == "not reported":
        return "cost not reported"
    return f"${use['cost']:.4f}" + ("*" if use["cost_not_reported"] else "")


def _together(document: Mapping[str, Any]) -> Iterator[str]:
    yield _ACROSS
    for name, panels in document["components"].items():
        shared = "they share a database and are not independent" if len(panels) > 1 else "alone in it"
        yield f"component {name}: {len(panels)} panels ({shared}): {_listed(panels)}"
    if document["labels"] is None:
        yield "transfer labels: there is no label file; 'replaykit labels build' makes one"
    for counts in document["transfer_confusion"]:
        cells = ", ".join(f"{name.replace('_', ' ')} {counts[name]}" for name in _CELLS)
        yield (
            f"transfer decisions of {one_line(counts['arm'])} (conditions {counts['conditions_digest'][:8]}), "
            f"counts of panels: {cells}"
        )


def _listed(panels: Sequence[str]) -> str:
    return ", ".join(panels) if len(panels) <= 8 else f"{', '.join(panels[:3])}, … {panels[-1]}"


def _comparison(compared: Mapping[str, Any]) -> Iterator[str]:
    first, second = map(one_line, compared["arms"])
    yield f"{second} less {first}, trials paired by case seed, under conditions {compared['conditions_digest'][:8]}"
    head = ("panel", "component", "pairs", "successes", "difference", "left out")
    yield from _table(head, [_compared(panel) for panel in compared["panels"]])
    if compared["unpaired"]:
        yield f"only one arm played: {_listed(compared['unpaired'])}"
    yield from _interval(compared["interval"])


def _compared(panel: Mapping) -> tuple[str, ...]:
    pairs = panel["pairs"]
    wins = [sum(pair["successes"][side] for pair in pairs) for side in (0, 1)]
    out = [f"seed {seed}" for seed in panel["seeds_left_out"]]
    out += [f"seed {seed} ungraded" for seed in panel["ungraded_seeds"]]
    difference = "-" if panel["mean_difference"] is None else f"{panel['mean_difference']:+g}"
    counts = (f"{len(pairs)}", f"{wins[0]} -> {wins[1]}", difference)
    return (panel["panel"], panel["component"], *counts, ", ".join(out) or "-")


def _interval(interval: Mapping[str, Any]) -> Iterator[str]:
    if "refused" in interval:
        yield f"interval refused: {interval['refused']}"
        return
    yield (
        f"interval of the mean component difference: {interval['low']:+.4f} to {interval['high']:+.4f} "
        f"(level {interval['level']:g}, {interval['method']}, {len(interval['components'])} components; no score)"
    )
    for name, entry in interval["components"].items():
        yield f"  component {name}: {entry['panels']} panels, mean difference {entry['mean_difference']:+g}"
    if interval["note"]:
        yield f"  {interval['note']}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _record(row: Mapping) -> dict[str, Any]:
    record = {"panel": row["panel"], "arm": _cell(row["arm"]), "controls": _cell(" ".join(row["controls"]))}
    record |= {name: row[name] for name in _PLAIN}
    record |= {f"reliability_{figure['k']}": figure["value"] for figure in row["reliability"]}
    record |= {f"transfer_{name}": value for name, value in row["transfer"].items()}
    for part in ("violations", "format_errors", "terminations", "diagnostics", "requests"):
        record |= {f"{part}.{one_line(name)}": count for name, count in row[part].items()}
    for seat, use in row["seats"].items():
        record |= {f"{seat}.{name}": value for name, value in use.items()}
    return record | {"repeated_seeds": " ".join(map(str, row["repeated_seeds"]))}


def _cell(text: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    shown = one_line(text)
    return f"'{shown}" if shown[:1] in ("=", "+", "-", "@") else shown
