"""Importing tau2's results files: what is derived is what the engine says, and every difference is named."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from replaykit.cli.app import group
from replaykit.errors import UsageError
from replaykit.replay import replay
from replaykit.store import reader

RETURNS = "retail/2"  # twelve learner requests, one write, one judged assertion


def only(document: dict) -> dict:
    """The only simulation of a document."""
    return document["simulations"][0]


def test_a_simulation_becomes_a_cassette_that_replays(document, imported, runtime, fleet):
    (one,) = imported(document(RETURNS))
    cassette = reader.read(one.path)
    assert replay(cassette, runtime, fleet, "x").status == "equal"
    assert (one.result.reward, one.result.termination) == (1.0, "user_stop")


def test_what_is_derived_and_what_is_unknown_stands_in_the_header(document, imported):
    source = document(RETURNS)
    header = reader.read(imported(source)[0].path).header
    assert {"native_requests", "tool_results", "database", "policy_states", "verdicts"} <= header["derived"].keys()
    assert "wire" in header["unknown"]
    assert header["settings"]["version"] == "unknown"
    assert header["imported"]["id"] == only(source)["id"]
    assert header["roster"]["judge"]["model"] == "unknown"


def test_what_the_file_said_is_kept_beside_what_is_derived(document, imported):
    source = document(RETURNS)
    only(source)["reward_info"]["reward"] = 0.25
    (one,) = imported(source)
    assert reader.read(one.path).footer["recorded"]["reward_info"]["reward"] == 0.25
    assert one.result.reward == 1.0
    assert [d.to_dict() for d in one.findings if d.name == "import.reward_differs"] == [
        {"name": "import.reward_differs", "detail": {"recorded": 0.25, "derived": 1.0}}
    ]


@pytest.mark.parametrize(
    ("member", "value", "learner"),
    [("raw_data", None, '{"order_id": "#W1"}'), ("raw_data", {"choices": []}, '{"order_id": "#W1"}')],
)
def test_arguments_without_the_models_own_text_are_written_as_tau2_writes_them(
    document, imported, member, value, learner
):
    source = document(RETURNS)
    message = next(m for m in only(source)["messages"] if m.get("tool_calls"))
    message[member] = value
    request = next(r for r in reader.read(imported(source)[0].path).requests if r.seat == "learner")
    assert request.outcome.tool_calls[0].arguments == json.dumps(message["tool_calls"][0]["arguments"])
    assert request.outcome.finish_reason is None


def test_the_models_own_text_of_arguments_is_kept(document, imported):
    source = document(RETURNS)
    message = next(m for m in only(source)["messages"] if m.get("tool_calls"))
    call = message["raw_data"]["choices"][0]["message"]["tool_calls"][0]["function"]
    call["arguments"] = json.dumps(message["tool_calls"][0]["arguments"], indent=3)
    request = next(r for r in reader.read(imported(source)[0].path).requests if r.seat == "learner")
    assert request.outcome.tool_calls[0].arguments == call["arguments"]


def test_text_that_says_something_else_than_the_call_is_not_taken(document, imported):
    source = document(RETURNS)
    message = next(m for m in only(source)["messages"] if m.get("tool_calls"))
    message["raw_data"]["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"other": 1}'
    request = next(r for r in reader.read(imported(source)[0].path).requests if r.seat == "learner")
    assert json.loads(request.outcome.tool_calls[0].arguments) == message["tool_calls"][0]["arguments"]


def written(messages: list[dict], name: str) -> int:
    """Index of the result of the first call of a tool."""
    return 1 + next(i for i, m in enumerate(messages) if (m.get("tool_calls") or [{}])[0].get("name") == name)


def test_a_write_that_now_returns_something_else_is_named_with_its_field(document, imported, findings):
    source = document(RETURNS)
    index = written(only(source)["messages"], "return_delivered_order_items")
    content = json.loads(only(source)["messages"][index]["content"])
    content["return_items"][0] = "other"
    only(source)["messages"][index]["content"] = json.dumps(content)
    (one,) = imported(source)
    detail = findings(one)["import.result_differs"]
    assert detail["index"] == index
    assert (detail["tool"], detail["write"], detail["pointer"]) == (
        "return_delivered_order_items",
        True,
        "/return_items/0",
    )
    assert (detail["recorded"], one.result.reward) == ("other", 1.0)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"content": "Error: no"}, "content"), ({"error": True}, "error"), ({"id": "call_x"}, "id")],
)
def test_a_result_that_differs_otherwise_is_named_by_its_member(document, imported, findings, change, field):
    source = document(RETURNS)
    index = written(only(source)["messages"], "get_order_details")
    only(source)["messages"][index] |= change
    detail = findings(imported(source)[0])["import.result_differs"]
    assert (detail["index"], detail["field"], detail["write"]) == (index, field, False)


@pytest.mark.parametrize("steps", [1, 4, 9])
def test_a_run_cut_at_its_step_limit_ends_there_again(document, imported, runtime, fleet, steps):
    source = document(RETURNS)
    source["info"]["max_steps"] = steps
    simulation = only(source)
    ended = [i for i, m in enumerate(simulation["messages"]) if m["role"] != "assistant" or not m["tool_calls"]]
    simulation |= {"termination_reason": "max_steps", "reward_info": {"reward": 0.0, "reward_basis": None}}
    simulation["messages"] = simulation["messages"][: next(i for i in ended if i >= steps) + 1]
    (one,) = imported(source)
    assert (one.result.termination, one.result.reward, one.findings) == ("max_steps", 0.0, [])
    assert len(one.result.trajectory) == len(simulation["messages"])
    assert one.result.lost_turn is None
    assert replay(reader.read(one.path), runtime, fleet, "x").status == "equal"


@pytest.mark.parametrize(
    "reason", ["agent_error", "user_error", "timeout", "infrastructure_error", "context_window_exceeded"]
)
@pytest.mark.parametrize("kept", [0, 1, 4])
def test_a_run_that_broke_off_ends_for_its_own_reason(document, imported, runtime, fleet, reason, kept):
    source = document("retail/0")
    only(source).update(termination_reason=reason, reward_info=None, messages=only(source)["messages"][:kept])
    (one,) = imported(source)
    assert one.result.termination == reason
    assert one.result.lost_turn.reason == "not_recorded"
    assert one.result.reward == (None if reason == "infrastructure_error" else 0.0)
    assert replay(reader.read(one.path), runtime, fleet, "x").status == "equal"


def test_an_agent_that_ended_the_run_itself_is_graded_as_it_was(document, imported):
    source = document("retail/0")
    only(source).update(termination_reason="agent_stop", messages=only(source)["messages"][:-1])
    (one,) = imported(source)
    assert (one.result.termination, one.result.reward, one.result.lost_turn) == ("agent_stop", 1.0, None)


def test_a_judge_whose_checks_are_recorded_is_rebuilt_and_labelled(document, imported, findings):
    source = document(RETURNS)
    only(source)["reward_info"]["nl_assertions"][0].update(met=False, justification="It did not say so.")
    only(source)["reward_info"]["reward"] = 0.0
    (one,) = imported(source)
    assert one.result.reward == 0.0
    assert one.result.reward_info["assertions"][0]["justification"] == "It did not say so."
    assert "import.judge_reply_rebuilt" in findings(one)


def test_a_judge_that_found_nothing_is_not_one_that_nobody_asked(document, imported, findings):
    source = document(RETURNS)
    only(source)["reward_info"]["nl_assertions"] = []
    (one,) = imported(source)
    assert one.result.reward == 1.0
    assert "judge.all_true_default" in {d.name for d in one.result.diagnostics}


@pytest.mark.parametrize(
    "change", [{"nl_assertions": None}, {"reward_breakdown": {"DB": 1.0}}, {"nl_assertions": [{"met": True}]}]
)
def test_a_judge_that_is_not_recorded_leaves_the_reward_unknown_and_the_rest_derived(
    document, imported, runtime, fleet, change
):
    source = document(RETURNS)
    only(source)["reward_info"] |= change
    (one,) = imported(source)
    assert one.result.reward is None
    assert one.result.reward_info["db"]["match"] is True
    assert one.result.lost_turn.to_dict()["reason"] == "not_recorded"
    assert replay(reader.read(one.path), runtime, fleet, "x").status == "equal"


def test_verdicts_about_other_assertions_are_not_used(document, imported, findings):
    source = document(RETURNS)
    source["tasks"][0]["evaluation_criteria"]["nl_assertions"] = ["Agent should sing."]
    (one,) = imported(source)
    assert one.result.reward is None
    assert findings(one)["import.task_differs"]["pointer"] == "/evaluation_criteria/nl_assertions/0"


@pytest.mark.parametrize(
    ("place", "pointer"),
    [
        (("user_scenario", "instructions", "reason_for_call"), "/user_scenario/instructions/reason_for_call"),
        (("evaluation_criteria", "communicate_info"), "/evaluation_criteria/communicate_info"),
    ],
)
def test_a_task_that_is_not_ours_is_named_by_its_first_difference(document, imported, findings, place, pointer):
    source = document("airline/0")
    target = source["tasks"][0]
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = ["something else"] if isinstance(target[place[-1]], list) else "something else"
    assert findings(imported(source)[0])["import.task_differs"]["pointer"].startswith(pointer)


@pytest.mark.parametrize("tasks", [[], [{"id": "0"}], ["no task"]])
def test_a_task_that_cannot_be_compared_is_unknown_and_not_taken_for_ours(document, imported, findings, tasks):
    assert "import.task_unknown" in findings(imported(document("airline/0") | {"tasks": tasks})[0])


def test_another_policy_is_named_by_its_line(document, imported, findings):
    source = document("airline/0")
    lines = source["info"]["environment_info"]["policy"].splitlines(keepends=True)
    source["info"]["environment_info"]["policy"] = "".join([*lines[:4], "Be kind.\n", *lines[5:]])
    assert findings(imported(source)[0])["import.policy_differs"]["line"] == 5


def test_trials_of_a_task_become_cassettes_of_their_own(document, imported):
    source = document("airline/0")
    source["simulations"] += [only(source) | {"id": "b", "trial": 1, "seed": 373753}, only(source) | {"id": "c"}]
    done = imported(source)
    assert [one.path.name.rpartition("-s")[2] for one in done] == [
        "626729-t0.cassette.jsonl", "373753-t1.cassette.jsonl", "626729-t0-n2.cassette.jsonl",
    ]  # fmt: skip
    seeds = [reader.read(one.path).header["seeds"] for one in done]
    assert [(s["case"], s["trial"]) for s in seeds] == [(300, 626729), (373753, 373753), (300, 626729)]


def test_one_bad_simulation_does_not_stop_the_others(document, imported):
    source = document("airline/0")
    good = only(source)
    bad = [
        good | {"task_id": "999"},
        good | {"mode": "full_duplex"},
        good | {"termination_reason": "judge_stop"},
        good | {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "name": 7, "arguments": {}}]}]},
        "nothing",
    ]
    done = imported(source | {"simulations": [*bad, good]})
    assert [one.reason is None for one in done] == [False] * 5 + [True]
    assert "no panel 'airline/999'" in done[0].reason
    assert "only text episodes" in done[1].reason
    assert "/simulations/2/termination_reason" in done[2].reason
    assert "/simulations/3/messages/0/tool_calls/0/name" in done[3].reason


def test_what_is_there_already_is_not_overwritten(document, imported):
    source = document("airline/0")
    (first,) = imported(source)
    before = first.path.read_bytes()
    (second,) = imported(source)
    assert "never overwritten" in second.reason
    assert first.path.read_bytes() == before


def test_messages_behind_the_engines_end_are_named(document, imported, findings):
    source = document("airline/0")
    only(source)["messages"] += [{"role": "assistant", "content": "And?"}, {"role": "user", "content": "No."}]
    assert findings(imported(source)[0])["import.messages_unused"] == {"from_index": 4, "count": 2}


def test_a_message_of_another_seat_than_asked_ends_the_episode_there(document, imported):
    source = document("airline/0")
    only(source)["messages"].insert(2, {"role": "user", "content": "Are you there?"})
    (one,) = imported(source)
    assert (one.result.termination, one.result.reward) == ("unexpected_error", None)


def test_a_prompt_above_the_missions_limit_ends_nothing_in_a_run_that_had_other_limits(document, imported):
    source = document("airline/0")
    for message in only(source)["messages"][1:]:
        message["raw_data"]["usage"] = {"prompt_tokens": 50_000, "completion_tokens": 9_000}
        message["raw_data"]["choices"][0]["finish_reason"] = "length"
    (one,) = imported(source)
    assert (one.result.termination, one.result.reward) == ("user_stop", 1.0)


def test_a_folder_with_one_file_a_simulation_reads_like_one_file(document, imported, tmp_path):
    source = document("airline/0", "airline/1")
    folder = tmp_path / "run"
    (folder / "simulations").mkdir(parents=True)
    index = [{"id": s["id"], "task_id": s["task_id"], "trial": 0} for s in source["simulations"]]
    for simulation in source["simulations"]:
        (folder / "simulations" / f"{simulation['id']}.json").write_text(json.dumps(simulation))
    meta = {k: v for k, v in source.items() if k != "simulations"} | {"simulation_index": index}
    (folder / "results.json").write_text(json.dumps(meta))
    assert {one.panel for one in imported(folder)} == {"airline/0", "airline/1"}
    (folder / "simulations" / f"{source['simulations'][0]['id']}.json").unlink()
    with pytest.raises(UsageError, match="is missing"):
        imported(folder / "results.json")


def test_the_older_line_reads_too(document, imported):
    source = document(RETURNS)
    simulation = only(source)
    for member in ("ticks", "mode", "info"):
        del simulation[member]
    simulation["messages"] = [
        {k: v for k, v in m.items() if k != "raw_data" and v is not None} for m in simulation["messages"]
    ]
    (one,) = imported(source)
    assert (one.result.reward, [d.name for d in one.findings]) == (1.0, ["import.judge_reply_rebuilt"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("   \n", "is empty"),
        ("{", "is not JSON: .* in line 1, column 2"),
        ("[1]", "the document is not an object"),
        ("{}", "lacks 'info'"),
        ('{"info": 3}', "/info is 3"),
        ("[" * 5000 + "]" * 5000, "nested deeper"),
        ('{"info": {"environment_info": {}, "user_info": {}}}', "/info/environment_info lacks 'domain_name'"),
        ("\xff", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_results_file_is_refused_by_a_sentence(imported, tmp_path, text, sentence):
    path = tmp_path / "bad.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=sentence):
        imported(path)
    assert not (tmp_path / "out").exists()


def test_another_domain_is_refused(document, imported):
    source = document("airline/0")
    source["info"]["environment_info"]["domain_name"] = "telecom"
    with pytest.raises(UsageError, match="a run of the domain 'telecom'"):
        imported(source)


def test_secrets_in_a_results_file_do_not_reach_the_cassette(document, imported):
    source = document("airline/0")
    secret = "sk-" + "a1B2" * 8
    only(source)["messages"][1]["content"] += f" My key is {secret}."
    (one,) = imported(source)
    assert secret.encode() not in one.path.read_bytes()


def test_the_command_names_findings_and_exits_3_when_something_is_missing(document, tmp_path, monkeypatch, fleet):
    source = document("airline/0")
    source["simulations"].append(only(source) | {"id": "x", "task_id": "999"})
    source["info"]["environment_info"]["policy"] = "Be kind."
    path = tmp_path / "r.json"
    path.write_text(json.dumps(source))
    arguments = ["import", "tau2-results", str(path), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(group, arguments, standalone_mode=False)
    assert done.return_value == 3
    assert "import.policy_differs" in done.output
    assert "NOT IMPORTED simulation 1" in done.output
    assert done.output.splitlines()[-1] == "1 of 2 simulations imported"
