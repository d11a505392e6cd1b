"""The rules on what the engine really does: its error texts, its histories, its reference solutions."""

import json

import pytest

from replaykit import policy
from replaykit.budget import Budget, Ledger
from replaykit.engine import pins
from replaykit.engine.protocol import SeatModels
from replaykit.fleet_build import trial_seed
from replaykit.gateway import Gateway
from replaykit.parity import Script
from replaykit.policy.conversation import history
from replaykit.policy.labels import build_labels, document_bytes

DOMAINS = ("airline", "retail")
GREETED = {"customer": [{"content": "Hello"}, {"content": "###STOP###"}], "judge": [{"content": '{"results": []}'}]}


class Unwritten:
    """A journal that keeps nothing."""

    def __getattr__(self, name):
        return lambda *arguments: None


def run(runtime, panel, script):
    domain, _, scenario = panel.partition("/")
    gateway = Gateway(
        {seat: Script(replies) for seat, replies in script.items()}, Unwritten(), Ledger(Budget(), lambda: 0.0)
    )
    models = SeatModels(*[(pins.DEFAULT_MODEL, dict(pins.DEFAULT_ARGUMENTS)) for _ in range(3)])
    return runtime.run(domain, scenario, trial_seed(pins.DEFAULT_CASE_SEED), models, gateway.ask)


def context(runtime, domain, scenario="0"):
    names = frozenset(tool["function"]["name"] for tool in runtime.tool_schemas(domain))
    actions = runtime.scenarios(domain)[scenario].reference_actions
    return policy.PolicyContext(domain, runtime.write_tools(domain), names, actions)


def errors_of(runtime, domain, name, arguments):
    """The format errors of an episode whose learner makes one call."""
    call = {"id": "c1", "name": name, "arguments": json.dumps(arguments)}
    result = run(runtime, f"{domain}/0", GREETED | {"learner": [{"tool_calls": [call]}, {"content": "Done."}]})
    found = policy.final_state(result.trajectory, context(runtime, domain), result.lost_turn, result.termination)
    return [error.kind for error in found.format_errors]


def required(schema):
    return schema["function"]["parameters"].get("required") or []


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_tool_rejects_missing_and_unexpected_arguments(runtime, domain):
    for schema in runtime.tool_schemas(domain):
        name = schema["function"]["name"]
        if required(schema):
            assert errors_of(runtime, domain, name, {}) == ["invalid_arguments"], name
        unexpected = dict.fromkeys(required(schema), "x") | {"unexpected": 1}
        assert errors_of(runtime, domain, name, unexpected) == ["invalid_arguments"], name


@pytest.mark.parametrize("clash", ["requestor", "tool_name", "self"])
def test_a_clash_with_the_dispatchers_own_names_is_a_rejection(runtime, clash):
    assert errors_of(runtime, "airline", "get_user_details", {"user_id": "x", clash: "x"}) == ["invalid_arguments"]


WRONG_TYPES = {
    "an id in a list": ("retail", "get_order_details", {"order_id": []}),
    "an e-mail that is null": ("retail", "find_user_id_by_email", {"email": None}),
    "an amount that is a word": ("airline", "send_certificate", {"user_id": "mia_li_3668", "amount": "much"}),
    "an expression that is a number": ("airline", "calculate", {"expression": 5}),
}


@pytest.mark.parametrize("case", WRONG_TYPES)
def test_a_value_of_the_wrong_type_is_a_rejection(runtime, case):
    assert errors_of(runtime, *WRONG_TYPES[case]) == ["invalid_arguments"]


BUSINESS = {
    "an unknown order": ("retail", "get_order_details", {"order_id": "#W0"}),
    "an unknown user": ("retail", "find_user_id_by_email", {"email": "a@b.c"}),
    "an unknown reservation": ("airline", "get_reservation_details", {"reservation_id": "ZZZZZZ"}),
    "an unknown flight": ("airline", "get_flight_status", {"flight_number": "HAT999", "date": "2024-05-20"}),
    "a division by zero": ("airline", "calculate", {"expression": "1 / 0"}),
    "an expression that breaks off": ("airline", "calculate", {"expression": "(1 +"}),
    "a number called as a function": ("airline", "calculate", {"expression": "(1)(2)"}),
}


@pytest.mark.parametrize("case", BUSINESS)
def test_a_business_error_is_no_format_error(runtime, case):
    assert errors_of(runtime, *BUSINESS[case]) == []


def test_a_tool_of_the_other_domain_is_unknown(runtime):
    assert errors_of(runtime, "airline", "get_order_details", {"order_id": "#W1"}) == ["unknown_tool"]


@pytest.mark.parametrize("part", range(4))
def test_the_derived_histories_are_the_ones_tau2_holds(runtime, facts, part):
    for case in facts["cases"][part::40]:
        result = run(runtime, case["panel"], case["script"])
        derived = policy.final_state(
            result.trajectory, context(runtime, *case["panel"].split("/")), result.lost_turn, result.termination
        )
        for seat in ("learner", "customer"):
            held = [message for message in getattr(result, f"{seat}_state") if message["role"] != "system"]
            assert history(held).to_dict() == getattr(derived, f"{seat}_state"), (case["panel"], case["kind"], seat)


def test_the_reference_solutions_label_five_tasks_for_transfer(runtime):
    tasks = [
        {"domain": domain, "id": name, "reference_actions": scenario.reference_actions}
        for domain in DOMAINS
        for name, scenario in runtime.scenarios(domain).items()
    ]
    text = document_bytes(build_labels(tasks, None, None, "dd8757d4")).decode()
    assert (text.count('"gold_transfer_action"'), text.count('"no_transfer"')) == (5, 159)
