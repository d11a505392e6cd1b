"""The commands, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from replaykit.certify import inputs, subject
from replaykit.cli import app
from replaykit.cli.certify import command

from .conftest import Certified, order


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output."""
    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def test_verify_prints_one_line_a_step_and_exits_zero(certified: Certified) -> None:
    moment = certified.statement["predicate"]["certificate"]["issued_at"]
    code, output = run("verify", str(certified.path), "--now", moment)
    assert code == 0
    assert [line.split()[0] for line in output.splitlines()].count("ok") == len(output.splitlines()) - 1
    assert "skipped  fleet: no --fleet was given" in output


def test_verify_exits_five_when_a_step_is_wrong(certified: Certified) -> None:
    assert run("verify", str(certified.path), "--now", "2099-01-01T00:00:00Z")[0] == 5


def test_verify_exits_five_for_a_file_that_is_no_certificate(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text("{}")
    code, output = run("verify", str(path))
    assert code == 5 and output.startswith("WRONG    parse")


def test_verify_as_json_names_the_steps(certified: Certified) -> None:
    code, output = run(
        "verify", str(certified.path), "--json", "--now", certified.statement["predicate"]["certificate"]["issued_at"]
    )
    assert json.loads(output)["holds"] is True and code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["certify"], "name a transport"),
        (["certify", "no-such-transport", "--panels", "airline/0"], "there is no transport"),
        (["certify", "openai-chat", "--panels", "nowhere/1"], "there is no panel"),
        (["certify", "openai-chat", "--panels", "airline/0", "--base-url", "http://127.0.0.1:1/v1"], "go together"),
        (["certify", "openai-chat", "--panels", "airline/0", "--option", "dialect"], "KEY=JSON"),
        (["certify", "scripted", "--panels", "airline/0"], "cannot be made"),
        (["certify", "verify", "no-such-file.json"], "cannot be read"),
        (["certify", "verify", "x.json", "--now", "yesterday"], "is no moment"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_is_one_sentence_and_exit_two(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture
) -> None:
    assert app.run(arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error and len(error.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", "no list"),
        ("[{}]", "needs the texts"),
        (
            '[{"id":"w","check":"C99","panel":"*","reason":"r","owner":"o","link":"l","granted":"2026-01-01","expires":"2027-01-01"}]',
            "names no check",
        ),
        (
            '[{"id":"w","check":"C05","panel":"*","reason":"r","owner":"o","link":"l","granted":"2026-01-01","expires":"soon"}]',
            "a date that is none",
        ),
        ("nonsense", "cannot be read"),
    ],
)
def test_bad_waivers_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    from replaykit.certify import inputs
    from replaykit.errors import UsageError

    path = tmp_path / "waivers.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        inputs.waivers(path)


def test_the_group_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from replaykit.cli import certify, controls\n"
        "assert not {'httpx', 'pydantic', 'vcr', 'rich', 'deepdiff', 'tau2'} & set(sys.modules), sys.modules.keys()"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_litellm_is_certified_on_the_wire_that_its_prefix_names() -> None:
    pytest.importorskip("litellm", reason="the extra 'litellm' is not installed")
    named = subject.load("litellm", {})
    inputs.check_wire(named, None)
    assert (named.model_prefix, order(named).profile.wire, order(named, wire="openai-responses").profile.wire) == (
        "openai/",
        "openai-chat",
        "openai-responses",
    )
