"""Build the fleet from an engine. The document says nothing of the engine, so every engine gives the same bytes."""

from __future__ import annotations

from random import Random

from replaykit import canonical, fleet
from replaykit.budget import Budget
from replaykit.engine import pins
from replaykit.engine.protocol import Engine
from replaykit.settings import TAU3_TEXT_1


def build(engine: Engine, case_seed: int = pins.DEFAULT_CASE_SEED) -> fleet.Fleet:
    """The fleet of all base scenarios of both domains."""
    identity = {"transport": "openai-chat", "model": pins.DEFAULT_MODEL, "arguments": dict(pins.DEFAULT_ARGUMENTS)}
    return fleet.parse(
        {
            "schema": fleet.SCHEMA,
            "source": {
                "repository": pins.REPOSITORY,
                "revision": pins.REVISION,
                "distribution": pins.DISTRIBUTION,
                "version": pins.VERSION,
                "license": "MIT",
            },
            "settings": TAU3_TEXT_1.to_dict(),
            "budget": Budget().to_dict(),
            "domains": {domain: _domain(engine, domain) for domain in pins.DOMAINS},
            "rosters": {fleet.DEFAULT_ROSTER: {"customer": identity, "judge": identity}},
            "panels": [
                _panel(engine, domain, scenario, case_seed)
                for domain in pins.DOMAINS
                for scenario in engine.scenarios(domain)
            ],
        }
    )


def trial_seed(case_seed: int) -> int:
    """tau2's native first-trial seed of a case seed: 300 gives 626729."""
    return Random(case_seed).randint(0, 1_000_000)


def _domain(engine: Engine, domain: str) -> dict:
    return {
        "database_hash": engine.db_hash(domain),
        "write_tools": sorted(engine.write_tools(domain)),
        "tools": [t["function"]["name"] for t in engine.tool_schemas(domain)],
    }


def _panel(engine: Engine, domain: str, scenario_id: str, case_seed: int) -> dict:
    scenario = engine.scenarios(domain)[scenario_id]
    return {
        "id": f"{domain}/{scenario_id}",
        "domain": domain,
        "scenario": scenario_id,
        "population": {"scenarios": [scenario_id]},
        "metric": {"reward_basis": list(scenario.reward_basis)},
        "judge": {
            "required": scenario.judge_required,
            "assertions": len(scenario.assertions) if scenario.judge_required else 0,
        },
        "component": f"database:{domain}",
        "roster": fleet.DEFAULT_ROSTER,
        "seeds": {"case": case_seed, "trial": trial_seed(case_seed)},
        "reference_final_db_hash": engine.reference_outcome(domain, scenario_id)[0],
        "digests": {
            "scenario": scenario.digest,
            "policy": canonical.sha256(engine.policy(domain).encode("utf-8")),
            "database": pins.DATA_SHA256[f"{domain}/db.json"],
            "tools": canonical.ordered_digest(engine.tool_schemas(domain)),
        },
    }
