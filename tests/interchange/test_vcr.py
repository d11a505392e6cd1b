"""vcrpy: plain vcrpy plays what is exported, and what vcrpy wrote is played as an episode."""

from __future__ import annotations

import json

import httpx
import pytest
import vcr
import yaml

from replaykit import exchange, import_wire
from replaykit.errors import UsageError
from replaykit.interchange import vcr_file
from replaykit.interchange.vcr_file import Interaction
from replaykit.replay import replay
from replaykit.seats import SEATS
from replaykit.store import reader


def exchanges(path):
    """Every wire exchange of a cassette."""
    return [e for r in reader.read(path).requests for e in r.exchanges]


@pytest.mark.parametrize(("panel", "controls"), [("airline/0", "one-exchange"), ("retail/2", "reference")])
def test_plain_vcrpy_plays_every_reply_in_order(panel, controls, recording, tmp_path):
    (path,) = recording(panel, controls=controls)
    exchange.export_vcr(path, tmp_path / "t.yaml")
    sent = exchanges(path)
    with vcr.use_cassette(str(tmp_path / "t.yaml"), record_mode="none") as tape, httpx.Client() as client:
        answers = [client.post(e.request["uri"], content=e.request["body"]) for e in sent]
        assert tape.all_played
    assert [a.content for a in answers] == [e.response["body"] for e in sent]
    assert [a.status_code for a in answers] == [200] * len(sent)


BODIES = {
    "text": b'{"a": "b"}',
    "empty": b"",
    "events": b"data: 1\r\n\r\ndata: \xe2\x80\xa8\n\n",
    "not Unicode": b"\xff\x00\xfe",
    "yaml looks": b"- !!python/object/apply:os.system [true]\n",
    "controls": bytes(range(32)),
    "number": b"1e3",
    "date": b"2024-05-15",
    "null": b"null",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_bodies_come_back_byte_for_byte_in_both_tools(body, tmp_path):
    request = {"method": "POST", "uri": "http://127.0.0.1:9/v1", "headers": {"a": ["b"]}, "body": body}
    response = {"status": {"code": 200, "message": "OK"}, "headers": {"x": ["1", "2"]}, "body": body}
    (tmp_path / "t.yaml").write_text(vcr_file.text([Interaction(request, response)], {}), encoding="utf-8")
    (ours,) = vcr_file.read(tmp_path / "t.yaml").interactions
    assert (ours.request, ours.response) == (request, response)
    with vcr.use_cassette(str(tmp_path / "t.yaml"), record_mode="none"), httpx.Client() as client:
        assert client.post(request["uri"], content=body).content == body


def test_labels_agree_with_bodies(recording, tmp_path):
    (path,) = recording("airline/0")
    exchange.export_vcr(path, tmp_path / "t.yaml")
    for interaction in yaml.safe_load((tmp_path / "t.yaml").read_text())["interactions"]:
        for side, body in (
            ("request", interaction["request"]["body"]),
            ("response", interaction["response"]["body"]["string"]),
        ):
            labels = {name.lower(): values for name, values in interaction[side]["headers"].items()}
            assert "content-encoding" not in labels
            assert labels["content-length"] == [str(len(body.encode()))]


@pytest.mark.parametrize("panel", ["airline/0", "retail/2"])
def test_what_was_exported_comes_back(panel, recording, runtime, fleet, tmp_path):
    (path,) = recording(panel)
    exchange.export_vcr(path, tmp_path / "t.yaml")
    import_wire.import_vcr(tmp_path / "t.yaml", fleet, None, None, tmp_path / "back.cassette.jsonl")
    old, new = reader.read(path), reader.read(tmp_path / "back.cassette.jsonl")
    assert new.result == old.result
    assert [r.digest for r in new.requests] == [r.digest for r in old.requests]
    assert [e.response["body"] for e in exchanges(new.path)] == [e.response["body"] for e in exchanges(path)]
    assert replay(new, runtime, fleet, "x").status == "equal"
    assert new.header["derived"]["native_requests"].startswith("built by this engine")


def test_what_vcrpy_itself_recorded_is_played(recording, runtime, fleet, tmp_path):
    from replaykit.controls import ControlProvider, identities

    with ControlProvider() as provider, vcr.use_cassette(str(tmp_path / "own.yaml")), httpx.Client() as client:
        provider.add_case("c", identities.one_exchange())
        for sent in exchanges(recording("airline/0", controls="one-exchange")[0]):
            seat = "learner" if b'"tools"' in sent.request["body"] else "customer"
            client.post(
                f"{provider.base_url('c', seat)}/chat/completions",
                content=sent.request["body"],
                headers={"content-type": "application/json"},
            )
    result = import_wire.import_vcr(tmp_path / "own.yaml", fleet, "airline/0", None, tmp_path / "own.cassette.jsonl")
    assert (result.termination, result.reward) == ("user_stop", 1.0)
    assert reader.read(tmp_path / "own.cassette.jsonl").header["settings"]["version"] == "unknown"
    assert replay(reader.read(tmp_path / "own.cassette.jsonl"), runtime, fleet, "x").status == "equal"


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate"])
def test_every_wire_comes_back(wire, runtime, fleet, tmp_path):
    from replaykit import arm, record, seating
    from replaykit.controls import ControlProvider
    from replaykit.store.journal import Journal
    from replaykit.store.redaction import Redactor
    from replaykit.transports.sender import Sender

    panel, path = fleet.panel("retail/2"), tmp_path / "r.cassette.jsonl"
    scenario = runtime.scenarios("retail")["2"]
    with ControlProvider() as provider, Sender() as sender:
        seating.from_controls("reference", scenario, "c", provider, sender)
        seats = {s: {"transport": wire, "model": "m", "base_url": provider.base_url("c", s, wire)} for s in SEATS}
        os_key = {"CONTROL_KEY": seating.CONTROL_KEY}
        mine = arm.parse({s: {**row, "key_env": "CONTROL_KEY"} for s, row in seats.items()}, "mine", "test")
        seated = seating.from_arm(mine, sender, os_key)
        with Journal.create(path, record.header(runtime, fleet, panel, seated, 300), Redactor()) as journal:
            record.play(runtime, panel, seated, journal, 300, Redactor())
    exchange.export_vcr(path, tmp_path / "t.yaml")
    result = import_wire.import_vcr(tmp_path / "t.yaml", fleet, None, None, tmp_path / "back.cassette.jsonl")
    assert result == reader.read(path).result
    assert result.reward == 1.0


@pytest.fixture
def exported(recording, tmp_path):
    """An exported file as a document that can be changed and written again."""
    (path,) = recording("airline/0")
    exchange.export_vcr(path, tmp_path / "t.yaml")
    return yaml.safe_load((tmp_path / "t.yaml").read_text())


@pytest.fixture
def played(fleet, tmp_path):
    """A function that imports a document as JSON or YAML."""

    def run(document, panel=None):
        (tmp_path / "changed.json").write_text(json.dumps(document))
        return import_wire.import_vcr(
            tmp_path / "changed.json", fleet, panel, None, tmp_path / "changed.cassette.jsonl"
        )

    return run


def test_a_failed_attempt_before_a_good_one_is_an_attempt(exported, played, tmp_path):
    first = exported["interactions"][0]
    refused = {
        "status": {"code": 429, "message": "Too Many"},
        "headers": {},
        "body": {"string": '{"error": {"message": "slow"}}'},
    }
    exported["interactions"].insert(0, first | {"response": refused})
    assert played(exported).termination == "user_stop"
    attempts = reader.read(tmp_path / "changed.cassette.jsonl").requests[0].exchanges
    assert [(a.attempt, a.failure and a.failure["kind"]) for a in attempts] == [(1, "rate_limit"), (2, None)]


def test_a_file_that_ends_early_ends_the_episode_with_an_unknown_reward(exported, played, runtime, fleet, tmp_path):
    del exported["interactions"][-1]
    result = played(exported)
    assert (result.termination, result.reward, result.lost_turn.reason) == ("unexpected_error", None, "not_recorded")
    assert replay(reader.read(tmp_path / "changed.cassette.jsonl"), runtime, fleet, "x").status == "equal"


def test_what_speaks_no_known_wire_is_ignored_and_counted(exported, played):
    other = {"method": "GET", "uri": "https://example.test/prices.json", "headers": {}, "body": None}
    exported["interactions"].insert(1, {**exported["interactions"][0], "request": other})
    found = {d.name: d.detail for d in played(exported).diagnostics}
    assert found == {"import.interactions_ignored": {"count": 1}}


def test_another_panels_file_is_refused_and_leaves_nothing(exported, played, tmp_path):
    with pytest.raises(UsageError, match="does not hold the customer's instructions for this panel"):
        played(exported, "airline/3")
    assert not (tmp_path / "changed.cassette.jsonl").exists()


def test_a_missing_interaction_in_between_is_refused(exported, played):
    del exported["interactions"][1]
    with pytest.raises(UsageError, match="interaction 2 carries no tools, but request 2 goes to the learner"):
        played(exported)


def test_a_request_that_said_something_else_is_named(exported, played):
    asked = exported["interactions"][1]["request"]
    asked["body"] = asked["body"].replace("Hello, I need help", "Hi, I need help")
    found = [d.detail for d in played(exported).diagnostics if d.name == "import.wire_request_differs"]
    assert found == [{"interaction": 2, "request": 2, "seat": "learner", "pointer": "/messages/2/content"}]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 2}, "has version 2"),
        ({"interactions": []}, "holds no interactions"),
        ({"interactions": [{"request": {}}]}, "/interactions/0 lacks 'response'"),
        ({"metadata": {}}, "does not say which panel"),
    ],
)
def test_what_is_no_cassette_of_vcrpy_is_refused_by_a_sentence(exported, played, change, sentence):
    with pytest.raises(UsageError, match=sentence):
        played(exported | change)


PAIRS = zip("abcdefgh", "bcdefghi", strict=True)
UNFOLDING = "a: &a [x]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in PAIRS)
HOSTILE = {
    "an object tag": ("!!python/object/apply:os.system ['true']", "asks to build what is not plain data"),
    "a tag inside": ("version: 1\ninteractions: [!!python/tuple [1]]", "asks to build what is not plain data"),
    "aliases that unfold": (UNFOLDING, "unfolds to more"),
    "an alias to itself": ("&a [*a]", "nested deeper"),
    "nothing": ("", "is empty"),
    "half a line": ("version: 1\ninteractions: [", "is not YAML"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_yaml_is_refused_unchanged(text, sentence, fleet, tmp_path):
    path = tmp_path / "h.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        import_wire.import_vcr(path, fleet, "airline/0", None, tmp_path / "h.cassette.jsonl")
    assert path.read_text() == text
    assert not (tmp_path / "h.cassette.jsonl").exists()


def test_an_imported_run_without_a_wire_has_nothing_to_export(document, imported, tmp_path):
    (one,) = imported(document("airline/0"))
    for export in (exchange.export_vcr, exchange.export_har):
        with pytest.raises(UsageError, match="holds no HTTP"):
            export(one.path, tmp_path / "x")


def test_no_existing_file_is_overwritten(recording, tmp_path):
    (path,) = recording("airline/0")
    (tmp_path / "x").write_text("mine")
    for export in (exchange.export_vcr, exchange.export_har):
        with pytest.raises(UsageError, match="never overwritten"):
            export(path, tmp_path / "x")
    assert (tmp_path / "x").read_text() == "mine"
