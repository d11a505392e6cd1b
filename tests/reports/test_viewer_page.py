"""The viewer's page as text: its content policy, its data, its size."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

from replaykit.reports.transcript import transcript
from replaykit.reports.viewer import page
from replaykit.reports.viewer.episodes import Collection
from replaykit.reports.viewer.packing import Documents, Pool
from replaykit.store import reader

EMPTY = {"schema": "replaykit.viewer/1", "pool": [], "episodes": [], "unreadable": []}


def _digest(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _unpacked(value, pool):
    """What the page's script does with packed data."""
    if isinstance(value, list):
        return [_unpacked(part, pool) for part in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["$"]:
        return {"$": _unpacked(value["$"][0], pool)} if isinstance(value["$"], list) else _pooled(value["$"], pool)
    if list(value) == ["#"]:
        return {"#": _unpacked(value["#"][0], pool)} if isinstance(value["#"], list) else json.loads(value["#"])
    return {key: _unpacked(part, pool) for key, part in value.items()}


def _pooled(place, pool):
    return pool[place] if isinstance(pool[place], str) else _unpacked(pool[place], pool)


def test_the_policy_names_the_script_and_the_style_by_digest():
    html = page.html(EMPTY)
    style, script = (re.search(rf"<{tag}>(.*?)</{tag}>", html, re.S)[1] for tag in ("style", "script"))
    assert f"script-src '{_digest(script)}'; style-src '{_digest(style)}'" in html
    assert "default-src 'none'" in html and "unsafe" not in html


def test_the_page_names_no_place_outside_itself():
    assert not re.search(r"""(https?:)?//[a-z]|(src|href)=["'][^#]""", page.html(EMPTY).replace("// ", ""))


@pytest.mark.parametrize("name", page.SCRIPTS)
def test_no_script_makes_markup_from_text(name):
    text = page._file(name)
    assert not re.search(r"(inner|outer|Adjacent)HTML|document\.write|eval\(|new Function|DOMParser|srcdoc", text)


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "a\0b", "\ud800", "\u2028", "{{data}}", "é漢👍"])
def test_embedded_data_holds_no_markup_and_reads_back(text):
    written = page.embedded({"text": text})
    assert not set(written) & set("<>&") and json.loads(written.encode()) == {"text": text}


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 1.0, 2**60, 1e-7, 0.5, True, None]},
        {"$": 1},
        {"#": "1.0"},
        {"$": {"#": ["x" * 500]}},
        ["y" * 500, "y" * 500, {"k": "y" * 500}],
        -0.0,
        {"__proto__": {"a": 1}},
    ],
    ids=["numbers", "a mark", "another mark", "marks in marks", "long texts", "minus zero", "a prototype"],
)
def test_packed_values_read_back_in_their_spelling(value):
    pool = Pool()
    packed = json.loads(page.embedded(pool.pack(value)))
    assert repr(_unpacked(packed, pool.values)) == repr(value)


def test_a_long_text_stands_in_the_pool_once():
    pool = Pool()
    pool.pack(["z" * 500, {"again": "z" * 500}])
    assert pool.values == ["z" * 500]


def test_a_document_is_what_it_adds_to_the_one_before():
    documents = Documents(Pool())
    documents.add("s", {"model": "m", "messages": [{"a": 1}, {"a": 2}], "seed": 1})
    documents.add("s", {"model": "m", "messages": [{"a": 1}, {"a": 2}, {"a": 3}], "seed": 2})
    assert documents.packed[1] == {"like": 0, "grow": {"messages": [2, {"a": 3}]}, "set": {"seed": 2}}


def test_a_number_in_another_spelling_is_another_message():
    documents = Documents(Pool())
    documents.add("s", {"messages": [{"a": 1}, {"a": 1}]})
    documents.add("s", {"messages": [{"a": 1}, {"a": 1.0}]})
    assert documents.packed[1]["grow"] == {"messages": [1, {"a": {"#": "1.0"}}]}


def test_the_page_grows_with_the_conversation_and_not_with_its_square(script, domains):
    def size(turns):
        played = script(f"t{turns}").customer("Hello.")
        for i in range(turns):
            played.learner(None, ("get_order_details", {"order_id": f"#W{i}"})).result(f"order {i} " * 20)
        collection = Collection()
        collection.add(transcript(reader.read(played.end()), domains))
        return len(page.embedded(collection.to_dict()))

    assert size(80) < 2.3 * size(40)


def test_two_episodes_of_one_name_have_two_links(script, domains, tmp_path):
    collection = Collection()
    for folder in ("a", "b"):
        path = script(f"{folder}/same").customer("Hello.").end()
        collection.add(transcript(reader.read(path), domains))
    assert [e["id"] for e in collection.episodes] == ["retail-same", "retail-same~2"]
