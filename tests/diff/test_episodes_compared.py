"""Two recorded episodes: what differs, in which section, and what it follows from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from replaykit.diff import episodes as comparison
from replaykit.diff.ignoring import Ignored
from replaykit.errors import UsageError

from .rewriting import rewritten


@pytest.fixture
def change(episodes, tmp_path):
    """A function that changes the document of a recorded episode and gives both cassettes."""

    def changed(function, panel="retail/2", **options):
        return episodes[panel], rewritten(episodes[panel], tmp_path / "changed.cassette.jsonl", function, **options)

    return changed


def by_section(found) -> dict[str, list]:
    sections: dict[str, list] = {}
    for finding in found.findings:
        sections.setdefault(finding.section, []).append(finding)
    return sections


def test_another_reply_to_the_same_request_is_a_cause_and_what_comes_after_follows_from_it(change):
    def edit(data):
        data["turns"][3]["outcome"]["reply"]["content"] = "Another answer."
        data["turns"][4]["native"]["messages"][-1]["content"] = "Another result."

    found = comparison.compare(*change(edit))
    reply, request = found.findings
    assert (reply.section, reply.number, reply.follows_from) == ("replies", 4, ())
    assert (request.section, request.number, request.follows_from) == ("requests", 5, ("reply 4",))


def test_a_tool_schema_never_follows_from_a_reply(change):
    def edit(data):
        data["turns"][3]["outcome"]["reply"]["content"] = "Another answer."
        data["turns"][4]["native"]["tools"][0]["function"]["description"] = "Another description."

    assert [f.is_cause for f in comparison.compare(*change(edit)).findings] == [True, True]


def test_another_engine_can_be_behind_a_tool_schema(change):
    def edit(data):
        data["header"]["engine"]["version"] = "9"
        data["turns"][4]["native"]["tools"][0]["function"]["description"] = "Another description."

    engine, schema = comparison.compare(*change(edit)).findings
    assert engine.section == "engine"
    assert schema.follows_from == ("engine",)


def test_rows_that_differ_after_the_same_calls_are_a_cause(change):
    def edit(data):
        row = data["footer"]["result"]["db_changes"]["orders"]["#W2378156"]
        row["after"]["status"] = "lost"
        data["footer"]["result"]["final_db_hash"] = "0" * 64

    (row,) = comparison.compare(*change(edit)).findings
    assert (row.table, row.key, row.field) == ("orders", "#W2378156", "status")
    assert (row.before, row.left, row.right) == (("delivered",), "return requested", "lost")
    assert row.is_cause


def test_a_hash_that_differs_with_no_row_that_does_is_not_located_and_never_same(change):
    def edit(data):
        data["footer"]["result"]["final_db_hash"] = "0" * 64

    found = comparison.compare(*change(edit))
    assert found.status == "different"
    assert [f.kind for f in found.findings] == ["not_located"]


def test_cassettes_from_before_rows_were_kept_say_so(change):
    def edit(data):
        data["footer"]["result"]["final_db_hash"] = "0" * 64
        del data["footer"]["result"]["db_changes"]

    (finding,) = comparison.compare(*change(edit)).findings
    assert finding.kind == "not_located"
    assert "right cassette holds no rows" in finding.note


def test_a_change_that_later_requests_carry_on_is_told_once(change):
    def edit(data):
        for turn in data["turns"]:
            for message in turn["native"]["messages"]:
                if message["role"] == "user" and message.get("content"):
                    message["content"] += " Please."

    numbers = [f.number for f in by_section(comparison.compare(*change(edit)))["requests"]]
    assert len(numbers) == len(set(numbers)) <= 4


def test_a_reward_that_differs_alone_is_a_cause(change):
    def edit(data):
        data["footer"]["result"]["reward"] = 0.5

    (finding,) = comparison.compare(*change(edit)).findings
    assert (finding.place, finding.is_cause) == ("/result/reward", True)


@pytest.mark.parametrize(
    ("member", "value", "place"),
    [
        ("termination", "agent_stop", "/result/termination"),
        ("steps", 7, "/result/steps"),
        ("diagnostics", [], "/result/diagnostics/0"),
        ("trajectory", [], "/result/trajectory/0"),
        ("learner_state", [], "/result/learner_state/0"),
    ],
)
def test_every_part_of_a_result_is_compared(change, member, value, place):
    def edit(data):
        data["footer"]["result"][member] = value

    assert (
        comparison.compare(*change(edit, "retail/37" if member != "diagnostics" else "retail/2")).first.place == place
    )


def test_tokens_and_cost_are_compared_apart_from_the_replies(change):
    def edit(data):
        reply = data["turns"][1]["outcome"]["reply"]
        reply |= {"id": "other", "usage": reply["usage"] | {"prompt_tokens": reply["usage"]["prompt_tokens"] + 1}}

    (finding,) = comparison.compare(*change(edit)).findings
    assert (finding.section, finding.pointer) == ("usage", "/learner/prompt_tokens")


def test_an_interrupted_side_is_unfinished_and_never_same(change):
    found = comparison.compare(*change(lambda data: data["turns"].__delitem__(slice(6, None)), ends=False))
    assert found.status == "unfinished"
    assert found.findings == ()
    assert len(found.unfinished) == 2


def test_a_difference_before_an_interruption_is_a_difference(change):
    def edit(data):
        del data["turns"][6:]
        data["turns"][2]["outcome"]["reply"]["content"] = "Another answer."

    assert comparison.compare(*change(edit, ends=False)).status == "different"


def test_a_limit_of_work_is_unfinished_and_named(episodes):
    source = episodes["retail/2"]
    found = comparison.compare(source, source, work_limit=5)
    assert found.status == "unfinished"
    assert "limit of 5" in found.unfinished[0]


def renumber(data):
    """Every tool call id written anew, in replies, histories and trajectory, as another provider would."""
    text = json.dumps(data["turns"]), json.dumps(data["footer"]["result"])
    for i in range(20, -1, -1):
        text = tuple(t.replace(f'"call_{i}"', f'"toolu_{i * 7}"') for t in text)
    data["turns"][:] = json.loads(text[0])
    data["footer"]["result"] = json.loads(text[1])


def test_renumbered_tool_calls_are_no_change_of_behaviour(change):
    found = comparison.compare(*change(renumber))
    assert (found.status, found.renumbered) == ("same", 11)


def test_behind_renumbered_calls_the_first_real_difference_is_named(change):
    def edit(data):
        renumber(data)
        data["turns"][8]["native"]["messages"][-1]["content"] = "Another result."

    first = comparison.compare(*change(edit)).first
    assert (first.section, first.number) == ("requests", 9)
    assert first.right == "Another result."


@pytest.mark.parametrize("content", [None, ""])
def test_two_ways_to_write_no_text_are_told_apart_as_such(change, content):
    def edit(data):
        message = next(
            m for m in data["turns"][8]["native"]["messages"] if m["role"] == "assistant" and not m["content"]
        )
        message["content"] = content

    found = comparison.compare(*change(edit))
    assert [f.kind for f in found.findings] == ([] if content is None else ["no_text"])


def test_one_id_changed_in_one_place_is_a_difference(change):
    def edit(data):
        data["turns"][8]["native"]["messages"][-1]["tool_call_id"] = "call_other"

    assert comparison.compare(*change(edit)).first.pointer.endswith("/tool_call_id")


@pytest.mark.parametrize(
    ("pointer", "status"),
    [
        ("/requests/*/messages/*/content", "same"),
        ("/requests/4", "same"),
        ("/requests", "different"),
        ("/requests/5", "different"),
        ("/requests/4/messages/0", "different"),
        ("/result", "different"),
    ],
)
def test_what_is_ignored_is_left_out_and_nothing_else(change, pointer, status):
    def edit(data):
        data["turns"][3]["native"]["messages"][-1]["content"] = "Another result."

    ignored = Ignored([pointer])
    assert comparison.compare(*change(edit), ignored).status == ("same" if pointer == "/requests" else status)
    assert list(ignored.counts) == [pointer]
    if status == "same":
        assert ignored.counts[pointer] > 0


def test_ignoring_one_member_keeps_the_alignment_of_its_siblings(change):
    def edit(data):
        for i, message in enumerate(data["footer"]["result"]["trajectory"]):
            message["content"] = f"stamp {i}"
        data["footer"]["result"]["trajectory"].insert(5, {"role": "user", "content": "new", "tool_calls": None})

    found = comparison.compare(*change(edit), Ignored(["/result/trajectory/*/content"]))
    assert [(f.kind, f.pointer) for f in found.findings if "/trajectory" in f.pointer] == [("extra", "/trajectory/5")]


def test_an_ignored_pointer_has_to_be_one():
    with pytest.raises(UsageError, match="no JSON pointer"):
        Ignored(["messages"])


def test_a_comparison_imports_no_engine(episodes):
    script = (
        "import sys; from pathlib import Path; from replaykit.diff import report;"
        "p = Path(sys.argv[1]); assert report.compare(p, p).exit_code == 0;"
        "sys.exit('tau2' in sys.modules or 'deepdiff' in sys.modules)"
    )
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", script, str(episodes["retail/2"].path)], env={"PYTHONPATH": str(root)}, check=False
    )
    assert done.returncode == 0
