"""Export cassettes as a results file of tau2's, for its viewer, its metrics and its submission tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from replaykit import canonical, engine
from replaykit.cassette import Cassette
from replaykit.engine import pins, results_form
from replaykit.engine.tau2_engine import Tau2Engine
from replaykit.errors import UsageError
from replaykit.interchange import tau2_export
from replaykit.recorded_terms import models
from replaykit.store import atomic, reader


def export(paths: Iterable[Path], out: Path) -> tuple[int, list[Path]]:
    """Write a results file from whole cassettes of one domain and one arm.

    Args:
        paths: Cassettes, or folders of them.
        out: The file; an existing one is never overwritten.

    Returns:
        How many simulations it holds, and the cassettes left out because they are interrupted.

    Raises:
        UsageError: there is none, they do not belong into one file, or the file exists.
    """
    if out.exists():
        raise UsageError(f"{out} exists and is never overwritten: choose another name")
    cassettes = [reader.read(path) for path in reader.find(paths)]
    whole = [c for c in cassettes if not c.interrupted]
    if not whole:
        raise UsageError("there is no whole cassette to export: give cassettes, or folders of them")
    document = results(whole, engine.load())
    try:
        atomic.write_text(out, tau2_export.text(document) + "\n")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from error
    return len(whole), [c.path for c in cassettes if c.interrupted]


def results(cassettes: list[Cassette], runtime: Tau2Engine) -> dict:
    """The results document of whole cassettes.

    Raises:
        UsageError: they are of several domains, arms, rosters or limits, which one file cannot hold.
        EvidenceError: a cassette's parts do not fit together.
    """
    _check_alike(cassettes)
    domain = cassettes[0].panel.partition("/")[0]
    tasks = {t["id"]: t for t in runtime.domain(domain).files.tasks}
    kinds = results_form.tool_kinds(runtime, domain)
    simulations = []
    for cassette, trial in _numbered(cassettes):
        simulations.append(tau2_export.simulation(cassette, trial, tasks[_scenario(cassette, tasks)], kinds))
    order = list(tasks)
    simulations.sort(key=lambda s: (s["trial"], order.index(s["task_id"])))
    named = {s["task_id"] for s in simulations}
    info = _info(cassettes, runtime, domain, 1 + max(s["trial"] for s in simulations))
    used = [task for task_id, task in tasks.items() if task_id in named]
    return tau2_export.document(info, used, simulations, str(cassettes[0].header["created_at"]))


def _scenario(cassette: Cassette, tasks: dict) -> str:
    scenario = cassette.panel.partition("/")[2]
    if scenario not in tasks:
        raise UsageError(f"{cassette.path} is of the panel {cassette.panel!r}, which tau2 {pins.VERSION} does not have")
    return scenario


_ALIKE = {
    "domain": lambda c: c.panel.partition("/")[0],
    "arm": lambda c: c.header["controls"] or c.header["arm"],  # what a control says depends on its panel
    "roster": lambda c: c.header["roster"],
    "limits": lambda c: c.header.get("limits"),
}


def _check_alike(cassettes: list[Cassette]) -> None:
    for name, part in _ALIKE.items():
        for cassette in cassettes[1:]:
            if not canonical.same(part(cassette), part(cassettes[0])):
                raise UsageError(
                    f"{cassettes[0].path} and {cassette.path} differ in their {name}, and a results file holds one: "
                    "export them one by one"
                )


def _numbered(cassettes: list[Cassette]) -> list[tuple[Cassette, int]]:
    """Cassettes with trial numbers: as an imported run had them, else in the order of their case seeds."""
    groups: dict[str, list[Cassette]] = defaultdict(list)
    for cassette in cassettes:
        groups[cassette.panel].append(cassette)
    numbered = []
    for group in groups.values():
        given = [c.header["seeds"].get("index") for c in group]
        if not all(type(n) is int for n in given) or len(set(given)) != len(given):
            group.sort(key=lambda c: str(c.header["seeds"]["case"]).zfill(20))
            given = list(range(len(group)))
        numbered += zip(group, given, strict=True)
    return numbered


def _info(cassettes: list[Cassette], runtime: Tau2Engine, domain: str, trials: int) -> dict:
    first = cassettes[0]
    limits = first.header.get("limits") or {"steps": pins.MAX_STEPS, "errors": pins.MAX_ERRORS}
    seats, asked = {**first.header["roster"], "learner": first.header["arm"]["learner"]}, models(first)
    seeds = {c.header["seeds"].get("run", c.header["seeds"]["case"]) for c in cassettes}
    customer = tau2_export.participant(seats["customer"], *asked.customer, "user_simulator")
    return {
        "git_commit": runtime.identity.revision,
        "num_trials": trials,
        "max_steps": limits["steps"],
        "max_errors": limits["errors"],
        "user_info": customer | {"global_simulation_guidelines": results_form.guidelines(runtime)},
        "agent_info": tau2_export.participant(seats["learner"], *asked.learner, "llm_agent"),
        "environment_info": {"domain_name": domain, "policy": runtime.policy(domain), "tool_defs": None},
        "seed": seeds.pop() if len(seeds) == 1 else None,
    }
