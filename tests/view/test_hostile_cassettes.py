"""What a model, a tool or a forger puts into a cassette is text in the viewer, and nothing else."""

from __future__ import annotations

import pytest

MARKUP = {
    "the end of a script": "</script><script>window.owned = 1</script>",
    "an image that fails": "<img src=x onerror='window.owned = 2'>",
    "a comment": "<!--<script>window.owned = 3</script>-->",
    "vector graphics": "<svg onload='window.owned = 4'></svg>",
    "a javascript link": "[click](javascript:window.owned=5) <a href='javascript:window.owned=5'>x</a>",
    "a style": "<style>body{display:none}</style>",
    "a frame": "<iframe srcdoc='<script>parent.owned = 6</script>'></iframe>",
    "the page's own placeholders": "{{script}} {{data}} {{policy}}",
    "a base": "<base href='https://a.invalid/'><meta http-equiv=refresh content='0;url=about:blank'>",
    "the data's own marks": '{"$": 0} {"#": "1"}',
}
PARTS = ("turn/2/request", "turn/2/wire", "turn/2/state", "verdict", "database", "about")
PLACES = ("", *(f"#/episode/retail-hostile/{part}" for part in PARTS), "#/diff/retail-hostile/retail-calm")


FOREIGN_LINKS = "return [...document.links].map((a) => a.getAttribute('href')).filter((href) => !href.startsWith('#'))"


@pytest.fixture
def hostile(script):
    """A cassette in which every text is hostile, and a calm one beside it."""

    def make(text):
        row = {"before": {text: text}, "after": {text: text + "!"}}
        played = script("hostile", arm={"name": text, "learner": {"model": text}}, controls=text, created_at=text)
        played.customer(text).learner(text, (text, {text: text, "__proto__": text})).result(text, True).learner(text)
        ending = {
            "db_changes": {text: {text: row}},
            "diagnostics": [{"name": text, "detail": text}],
            "termination": text,
            "reward_info": {"note": text, "breakdown": {text: text}, "assertions": [{"assertion": text, "met": text}]},
        }
        return played.judge(text).end(**ending), script("calm").customer("Hello.").end()

    return make


@pytest.mark.parametrize("text", MARKUP.values(), ids=MARKUP)
def test_markup_is_text_everywhere_runs_nowhere_and_leads_nowhere(text, hostile, browse):
    browser = browse(*hostile(text))
    scripts = len(browser.all("script, style, iframe, img, svg, base, meta"))
    for place in PLACES:
        browser.open(place)
        assert browser.run("return window.owned ?? null") is None
        assert text in browser.run("return document.querySelector('main').textContent")
        assert len(browser.all("script, style, iframe, img, svg, base, meta")) == scripts
        assert browser.run("return getComputedStyle(document.body).display") == "block"
        assert browser.run(FOREIGN_LINKS) == []
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("safe\u202eexe.txt", "U+202E"),
        ("a\0b", "NUL"),
        ("\ud83d", "U+D83D"),
        ("a\u2066b", "U+2066"),
        ("\U000e0041x", "U+E0041"),
        ("\x1b[31m", "U+001B"),
        ("a\u200bb", "U+200B"),
    ],
    ids=["a direction override", "a null", "half a pair", "an isolate", "a tag", "an escape", "nothing seen"],
)
def test_characters_that_steer_or_hide_are_named(text, name, hostile, browse):
    browser = browse(*hostile(text), place="#/episode/retail-hostile/turn/1")
    assert set(browser.texts(".turn .hidden-character")) == {name}


def test_a_member_named_like_a_prototype_is_a_member(hostile, browse):
    browser = browse(*hostile("x"), place="#/episode/retail-hostile")
    assert browser.texts(".arguments dt") == ["x", "__proto__"]
    assert browser.run("return ({}).x ?? null") is None


def test_the_policy_forbids_code_from_elsewhere_and_from_text(cancelled, browse):
    browser = browse(cancelled())
    refused = browser.run("""
        const names = [];
        try { document.body.innerHTML = '<b>x</b>'; } catch (error) { names.push(error.name); }
        try { eval('1'); } catch (error) { names.push(error.name); }
        const script = document.createElement('script');
        try { script.textContent = 'window.owned = 7'; document.body.append(script); }
        catch (error) { names.push(error.name); }
        return names.concat(window.owned ?? 'not run');
    """)
    assert refused[0] == "TypeError" and refused[-1] == "not run" and len(refused) >= 3


def test_the_page_asks_the_network_for_nothing(cancelled, browse):
    browser = browse(cancelled(), place="#/episode/retail-cancelled/turn/2/wire")
    assert browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)") == []


ODD = {
    "no reward": {"reward": None},
    "a text for a reward": {"reward": "much"},
    "rows that are no tables": {"db_changes": {"orders": 7, "users": {"a": [1], "b": {"before": 1, "after": [2]}}}},
    "rows that are a list": {"db_changes": [1, 2]},
    "no hashes": {"initial_db_hash": None, "final_db_hash": 7},
    "an end that is a number": {"termination": 7},
}


@pytest.mark.parametrize("result", ODD.values(), ids=ODD)
def test_results_of_odd_shapes_are_shown_without_a_complaint(result, cancelled, browse):
    browser = browse(cancelled(**result), cancelled("calm"))
    episode, diff = "#/episode/retail-cancelled", "#/diff/retail-cancelled/retail-calm"
    for place in ("", episode, f"{episode}/database", f"{episode}/verdict", diff):
        assert browser.open(place).one("main").text
    assert browser.complaints() == []
