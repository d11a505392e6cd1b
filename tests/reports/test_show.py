"""`replaykit show`: what a person reads in the terminal."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from replaykit.cli.app import run as main
from replaykit.reports import conversation
from replaykit.reports.folded import Folded, plain
from replaykit.reports.transcript import transcript
from replaykit.reports.untrusted import one_line, shown
from replaykit.store import reader


@pytest.fixture
def show(capsys, monkeypatch):
    """Run the command; standard output. A failure shows the error."""

    def run(*arguments, columns=120, code=0):
        monkeypatch.setenv("COLUMNS", str(columns))
        got = main(["show", *map(str, arguments)])
        out = capsys.readouterr()
        assert got == code, out.err
        return out.out if code == 0 else out.err

    return run


@pytest.fixture
def printed(domains):
    """A cassette as a terminal of a width shows it."""
    return lambda path, **view: conversation.text(transcript(reader.read(path), domains), conversation.View(**view))


def test_the_header_names_panel_arm_seats_and_controls(cancelled, show):
    head = show(cancelled()).partition("conversation ─")[0]
    assert head.startswith("retail/2  arm made-up  [controls: made-up]\n")
    for said in ("tau2-made-up 1", "[control:made-up]", "judge-model", "trial 626729"):
        assert said in head


def test_turns_show_seat_text_calls_and_results(cancelled, show):
    lines = show(cancelled()).splitlines()
    assert any(line.startswith("   1  customer  Please cancel my order #W1") for line in lines)
    assert any("6  learner   → cancel_pending_order  order_id=\"#W1\", reason=" in line for line in lines)
    assert any(line.startswith('   7  tool      {"order_id": "#W1"') for line in lines)


def test_policy_changes_stand_beside_their_turn_where_there_is_room(cancelled, show):
    line = next(line for line in show(cancelled()).splitlines() if line.startswith("   5  customer"))
    assert "Yes, please." in line and "confirmed: “yes”" in line


def test_policy_changes_stand_beneath_their_turn_where_there_is_none(cancelled, show):
    lines = show(cancelled(), columns=70).splitlines()
    place = next(i for i, line in enumerate(lines) if "5  customer" in line)
    assert lines[place + 1].strip() == "· confirmed: “yes”"


def test_the_verdict_names_reward_parts_diagnostics_and_database_rows(cancelled, show):
    verdict = show(cancelled()).partition("verdict ─")[2]
    for said in ("reward          1", "  DB            1", "judge.all_true_default", "orders #W1: status", "user_stop"):
        assert said in verdict


def test_an_unknown_reward_is_said_to_be_unknown(cancelled, show):
    assert "reward          unknown" in show(cancelled(reward=None))


def test_an_interrupted_recording_says_so_at_both_ends(script, show):
    path = script().customer("Hello there.").learner("How can I help?").interrupt()
    text = show(path)
    assert text.count("INTERRUPTED") >= 3
    assert "Hello there." in text and "How can I help?" in text


def test_a_torn_record_is_no_obstacle(script, show):
    path = script().customer("Hello there.").learner("How can I help?").interrupt()
    path.write_bytes(path.read_bytes()[:-40])
    assert "Hello there." in show(path) and "INTERRUPTED" in show(path)


def test_a_long_result_is_folded_unless_full_is_asked(script, show):
    played = script().customer("Hello.").learner(None, ("get_order_details", {"order_id": "#W1"}))
    path = played.result("word " * 500 + "LAST").end()
    assert "more characters (--full)" in show(path) and "LAST" not in show(path)
    assert "LAST" in show(path, "--full")


def test_a_request_is_unfolded_beneath_its_turn(cancelled, show):
    text = show(cancelled(), "--requests")
    assert text.count("native request ") == 8
    assert text.index("Shall I cancel") < text.index("native request 3 to the learner") < text.index("Yes, please.")


def test_one_request_is_shown_alone_and_in_full(cancelled, show):
    text = show(cancelled(), "--requests", "3")
    assert text.startswith("native request 3 to the learner") and "<policy>Be kind.</policy>" in text
    assert '"description": "The tool get_order_details."' in text and "verdict" not in text


def test_the_wire_of_a_range_is_shown(cancelled, show):
    text = show(cancelled(), "--wire", "2-3")
    assert text.count("POST http://127.0.0.1:9/v1/chat/completions") == 2
    assert "content-type: application/json" in text and "200 OK" in text


def test_the_cassette_may_follow_an_option_whose_number_is_left_out(cancelled, show):
    assert "native request 1" in show("--requests", cancelled())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--requests", "99"], "there is no request 99: this cassette has requests 1 to 8"),
        (["--wire", "3-2"], "there is no request 2-3"),
        (["--requests=x"], "give a request's number"),
    ],
    ids=["too large", "backwards", "no number"],
)
def test_a_number_that_is_none_is_one_sentence(cancelled, show, arguments, said):
    assert said in show(cancelled(), *arguments, code=2)


def test_json_holds_turns_result_and_what_was_asked(cancelled, show):
    document = json.loads(show(cancelled(), "--json", "--requests", "3", "--wire", "3"))
    assert [t["speaker"] for t in document["turns"]][:3] == ["learner", "customer", "learner"]
    assert document["turns"][7]["policy"]["state"]["done_writes"] == 1
    assert [r["number"] for r in document["requests"]] == [3]
    assert document["wire"][0]["exchanges"][0]["response"]["status"]["code"] == 200
    assert document["result"]["db_changes"]["orders"]["#W1"]["after"]["status"] == "cancelled"


def test_a_folder_is_answered_with_an_example(cancelled, show):
    path = cancelled()
    assert f"for example {path}" in show(path.parent, code=2)


def test_a_damaged_cassette_is_one_line_with_the_byte(cancelled, show):
    path = cancelled()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"Please cancel", b"Please accept", 1))
    said = show(path, code=5)
    assert said.count("\n") == 1 and "at byte" in said


HOSTILE = {
    "an escape sequence": ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
    "a C1 sequence": ("\x9b31m", "\\x9b31m"),
    "a carriage return": ("good\rbad", "good\\x0dbad"),
    "a direction override": ("abc\u202edcba", "abc\\u202edcba"),
    "an isolate": ("\u2066x\u2069", "\\u2066x\\u2069"),
    "nothing seen": ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
    "tag characters": ("\U000e0041", "\\U000e0041"),
    "a null": ("a\0b", "a\\x00b"),
    "half a pair": ("\ud83d!", "\\ud83d!"),
    "markup of the terminal library": ("[bold red]x[/bold red]", "[bold red]x[/bold red]"),
    "an emoji code": (":smile:", ":smile:"),
}


@pytest.mark.parametrize(("text", "written"), HOSTILE.values(), ids=HOSTILE)
def test_what_a_terminal_would_obey_is_written_out(text, written, script, show):
    assert shown(text) == written
    output = show(script().customer("Hello.").learner(text or None).end())
    assert written in output and not (set(output) - {"\n"}) & set(map(chr, range(32)))


WIDE = {
    "CJK": "日本語 " * 60,
    "emoji": "\U0001f469\u200d\U0001f467 family " * 40,
    "one word": "x" * 500,
    "accents": "cafe\u0301 " * 60,
}


@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE)
def test_no_line_is_wider_than_the_terminal(text, script, printed):
    from rich.cells import cell_len

    path = script().customer(text).learner(None, ("get_order_details", {"order_id": text})).result(text).end()
    for width in (60, 120):
        assert max(map(cell_len, printed(path, width=width).splitlines())) <= width


def test_colours_are_used_only_when_they_are_wanted(cancelled, printed):
    path = cancelled()
    assert "\x1b[" in printed(path, width=100, colour=True)
    assert "\x1b" not in printed(path, width=100)


def test_a_pipe_gets_no_colours_and_no_trailing_spaces(cancelled, show):
    text = show(cancelled())
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_lines_that_are_folded_away_are_counted():
    from rich.console import Console

    console = Console(width=10, file=sys.stderr)
    lines = console.render_lines(Folded(plain("0123456789" * 5), 2), console.options, pad=False)
    assert "30 more" in "".join(s.text for s in lines[2])


def test_one_line_has_no_line_breaks():
    assert one_line("a\nb") == "a\\nb"


def test_show_imports_no_engine(cancelled):
    code = "import sys; from replaykit.cli.app import run; run(['show', sys.argv[1]]); sys.exit('tau2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(cancelled())], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
