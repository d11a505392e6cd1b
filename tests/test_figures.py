"""The README quotes figures from the measured file only, and quotes them as they stand there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def results() -> dict:
    return json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))["benchmarks"]


@pytest.fixture(scope="module")
def quoted() -> dict[str, str]:
    """The README's table of figures: what -> figure."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## Figures\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return dict(rows[1:])


def row(results: dict, benchmark: str, member: str, value: object) -> dict:
    (found,) = [r for r in results[benchmark]["rows"] if r.get(member) == value]
    return found


def speed(results: dict, what: str) -> dict:
    return row(results, "replay_speed", "what", what)


def seconds_of_all_panels(results: dict) -> str:
    (seconds,) = re.findall(r"164 of 164 panels passed in ([\d.]+) s", str(results["certify"]["rows"]))
    return seconds


def of_lengths(results: dict, member: str) -> str:
    return ", ".join(f"{speed(results, f'about {n} messages')[member]:.0f}" for n in (60, 100, 170))


FIGURES = {
    "replaying a reference episode with every check, against tau2's own run and evaluation": lambda r: (
        f"{speed(r, 'reference episodes')['ratio']:.0f} times as fast"
    ),
    "the same with reading and verifying the cassette": lambda r: (
        f"{speed(r, 'reference episodes')['ratio_with_reading']:.0f} times as fast"
    ),
    "an episode of about 60, 100, 170 messages": lambda r: (
        f"{of_lengths(r, 'ratio')} times as fast ({of_lengths(r, 'ratio_with_reading')} with reading)"
    ),
    "all 164 reference episodes, whole command, cold": lambda r: "{wall_s:.1f} s, {peak_mb:.0f} MB".format_map(
        speed(r, "replay of 164, whole command, cold")
    ),
    "a second process": lambda r: (
        f"{speed(r, 'replay of 984, two processes against one, after the start')['ratio']:.2f} times the throughput"
    ),
    "`replaykit replay ONE`, cold, against importing tau2 alone": lambda r: (
        f"{row(r, 'start_up', 'what', 'replaykit replay ONE, against importing tau2 alone')['share']:.2f} of the time"
    ),
    "a cassette of 120 requests, against vcrpy's YAML of the same wire": lambda r: (
        "1/{plain_ratio:.0f}, 1/{zstd_ratio:.0f} with zstd".format_map(row(r, "cassette_size", "requests", 120))
    ),
    "listing 10,000 cassettes": lambda r: (
        f"{row(r, 'many_cassettes', 'what', '10,000 cassettes: list and coverage')['wall_s']:.1f} s"
    ),
    "recording, own time a request": lambda r: f"{max(x['record_cpu_ms'] for x in r['cassette_size']['rows']):.1f} ms",
    "certifying all 164 panels, fast profile": lambda r: f"{float(seconds_of_all_panels(r)):.0f} s",
}


def test_the_readme_quotes_what_was_measured_and_nothing_else(results, quoted):
    assert quoted == {what: figure(results) for what, figure in FIGURES.items()}
