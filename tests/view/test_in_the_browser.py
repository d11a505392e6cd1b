"""The viewer in a real browser, opened from a file."""

from __future__ import annotations

import pytest


@pytest.fixture
def two(cancelled):
    """Two episodes of one panel that part at their last message but two."""
    return cancelled("first"), cancelled("second", closing="Order #W1 is cancelled.", reward=0.0)


def test_the_list_names_every_episode_and_its_findings(browse, two):
    browser = browse(*two)
    assert browser.texts("tbody th") == ["retail/2", "retail/2"]
    assert browser.texts("tbody tr:first-child .findings .chip") == ["judge.all_true_default"]
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("place", "count"),
    [
        ("#/?q=order+%23W1+is", 1),
        ("#/?panel=retail", 2),
        ("#/?panel=retail/20", 0),
        ("#/?reward=0", 1),
        ("#/?finding=!", 0),
    ],
    ids=["text of the conversation", "part of a panel", "another panel", "reward", "without findings"],
)
def test_filters_keep_what_matches_and_stand_in_the_address(browse, two, place, count):
    browser = browse(*two, place=place)
    assert len(browser.all("tbody tr")) == count
    assert browser.one(".list-head .count").text == f"{count} of 2 episodes" if count < 2 else "2 episodes"


def test_typing_a_filter_changes_the_list_and_the_address(browse, two):
    browser = browse(*two)
    browser.press("/").press("s", "e", "c", "o", "n", "d")
    assert len(browser.all("tbody tr")) == 1 and browser.place == "#/?q=second"


def test_a_conversation_has_seats_cards_and_policy_states(browse, cancelled):
    browser = browse(cancelled(), place="#/episode/retail-cancelled")
    assert browser.texts(".seat")[:4] == ["learner", "customer", "learner", "tool"]
    assert browser.texts(".call-name code") == ["find_user_id_by_email", "cancel_pending_order"]
    assert browser.texts(".turn-policy")[7] == "write done: cancel_pending_orderanna_1 · confirmed · 1 write"
    assert browser.complaints() == []


def test_numbers_keep_their_spelling(browse, cancelled):
    browser = browse(cancelled(), place="#/episode/retail-cancelled")
    assert '"price": 50.0' in browser.texts(".result")[1]


def test_keys_move_the_selection_and_the_address_follows(browse, cancelled):
    browser = browse(cancelled(), place="#/episode/retail-cancelled").press("j", "j", "j", "k")
    assert browser.place == "#/episode/retail-cancelled/turn/1"
    assert browser.press("G").place.endswith("/request/8")
    assert browser.press("g").place.endswith("/turn/0")


def test_a_deep_link_selects_its_message_and_brings_it_into_view(browse, script):
    played = script("long").customer("Hello.")
    for i in range(60):
        played.learner(None, ("get_order_details", {"order_id": f"#W{i}"})).result("word " * 300)
    browser = browse(played.end(), place="#/episode/retail-long/turn/90")
    box = browser.run("return document.querySelector('[aria-current=true].turn').getBoundingClientRect().toJSON()")
    assert browser.one(".turn[aria-current=true] .turn-place").text == "90"
    assert 0 <= box["top"] < browser.run("return innerHeight")


def test_a_deep_link_opens_the_pane(browse, cancelled):
    browser = browse(cancelled(), place="#/episode/retail-cancelled/turn/6/wire")
    assert browser.one(".pane h2").text == "Wire of request 5"
    assert "POST http://127.0.0.1:9/v1/chat/completions" in browser.one(".pane").text


def test_the_request_pane_shows_the_native_request(browse, cancelled):
    browser = browse(cancelled(), place="#/episode/retail-cancelled/turn/6").press("r")
    assert browser.one(".pane h2").text == "Native request 5"
    assert browser.texts(".pane .role") == ["system", "assistant", "user", "assistant", "tool", "assistant", "user"]
    assert browser.press("s").one(".pane-tabs [aria-selected=true]").text == "Policy state"
    assert browser.press("s").run("return document.querySelector('.pane').hidden")


def test_findings_are_stepped_through(browse, script):
    played = script("findings").customer("Cancel.").learner(None, ("cancel_pending_order", {"order_id": "#W1"}))
    played.result("Error: no", True).learner("Sorry.").customer("Bye. ###STOP###")
    browser = browse(played.end(), place="#/episode/retail-findings").press("n")
    assert browser.place.endswith("/turn/2") and browser.press("n").place.endswith("/turn/3")
    assert browser.press("p").place.endswith("/turn/2")


def test_a_text_is_found_in_the_conversation(browse, cancelled):
    browser = browse(cancelled(), place="#/episode/retail-cancelled")
    browser.press("/").press(*"shall i").press("\ue007")
    assert browser.place.endswith("/turn/4") and browser.texts("mark") == ["Shall I"]


def test_database_changes_name_row_place_before_and_after(browse, cancelled):
    browser = browse(cancelled(), place="#/episode/retail-cancelled/database")
    assert browser.one(".row-card h2").text == "orders #W1 changed"
    assert browser.texts(".changes tbody tr > *") == ["/status", '"pending"', '"cancelled"']


def test_a_cassette_without_rows_says_that_they_were_not_recorded(browse, cancelled):
    browser = browse(cancelled(db_changes=None), place="#/episode/retail-cancelled/database")
    assert "its rows were not recorded" in browser.one(".database").text


def test_two_episodes_stand_side_by_side_with_the_first_divergence_in_view(browse, two):
    browser = browse(*two).press("j", "x", "j", "x", "d")
    assert browser.place.startswith("#/diff/retail-first/retail-second")
    assert browser.texts(".pair.different del") == ["Your order"]
    assert browser.texts(".pair.different ins") == ["Order #W1"]
    box = browser.run("return document.querySelector('.pair[aria-current=true]').getBoundingClientRect().toJSON()")
    assert 0 <= box["top"] < browser.run("return innerHeight")


def test_a_diff_names_the_first_divergence_with_its_pointer(browse, two):
    browser = browse(*two, place="#/diff/retail-first/retail-second")
    parting = browser.one(".parting").text
    assert "Message 8, by the learner." in parting and "/content" in parting
    assert "Request 7 to the customer is the first that differs, at /messages/5/content." in parting
    assert browser.complaints() == []


def test_equal_episodes_are_said_to_be_equal(browse, cancelled):
    browser = browse(cancelled("first"), cancelled("again"), place="#/diff/retail-first/retail-again")
    assert "Both conversations are the same, and so are all requests." in browser.one(".notice.good").text


def test_an_interrupted_recording_says_so(browse, script):
    path = script("cut").customer("Hello.").asks().interrupt()
    browser = browse(path, place="#/episode/retail-cut")
    assert "INTERRUPTED" in browser.one(".notice").text
    assert browser.texts(".aside-kind") == ["No reply was recorded"]


def test_a_file_that_cannot_be_read_is_named(browse, cancelled, tmp_path):
    path = cancelled()
    bad = tmp_path / "bad.cassette.jsonl"
    bad.write_bytes(path.read_bytes().replace(b"Please cancel", b"Please accept", 1))
    assert "1 file cannot be shown" in browse(path, bad).one(".notice").text


def test_the_keys_are_explained_and_the_overlay_closes(browse, cancelled):
    browser = browse(cancelled()).press("?")
    assert "next, previous message" in browser.one("#help").text
    browser.press("\ue00c")
    assert browser.run("return document.querySelector('#help').open") is False


def test_the_theme_follows_the_system_and_can_be_chosen(browse, cancelled):
    browser = browse(cancelled())
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(ground)
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    assert browser.run(ground) != light
    assert browser.press("t").run(ground) == light  # chosen: light
    assert browser.press("t").run(ground) != light  # chosen: dark
    browser.press("t")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_page_has_landmarks_names_and_one_heading(browse, cancelled):
    browser = browse(cancelled(), place="#/episode/retail-cancelled")
    assert [len(browser.all(name)) for name in ("main", "header.bar", "h1")] == [1, 1, 1]
    unnamed = """return [...document.querySelectorAll('button, select, input, a')].filter((node) =>
        !(node.textContent.trim() || node.getAttribute('aria-label') || node.labels?.length)).length"""
    assert browser.run(unnamed) == 0
    assert browser.one("html").get_attribute("lang") == "en"


CONTRAST = """
const light = (text) => {
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour.startsWith('rgb(')) return colour;
  }
  return 'rgb(255, 255, 255)';
};
const texts = [...document.querySelectorAll('body *')].filter((node) => node.checkVisibility() &&
  [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) && !node.closest('option'));
return texts.map((node) => {
  const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
  return [(a + 0.05) / (b + 0.05), node.className || node.tagName, node.textContent.slice(0, 30)];
}).filter(([ratio]) => ratio < 4.5);
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("place", ["", "#/episode/retail-first/turn/6/request", "#/diff/retail-first/retail-second"])
def test_every_text_has_enough_contrast(browse, two, theme, place):
    browser = browse(*two, place=place)
    browser.run("document.documentElement.dataset.theme = arguments[0]", theme)
    assert browser.run(CONTRAST) == []


@pytest.mark.parametrize("place", ["", "#/episode/retail-first/turn/6/wire", "#/diff/retail-first/retail-second"])
def test_nothing_is_wider_than_a_narrow_screen(browse, two, place):
    browser = browse(*two)
    narrow = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    try:
        assert browser.open(place).run("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_thousand_messages_are_all_there_and_reachable(browse, script):
    played = script("thousand").customer("Hello.")
    for i in range(499):
        message = {"role": "assistant", "content": f"Message {i}.", "tool_calls": None}
        played.trajectory += [message, {"role": "user", "content": f"Answer {i}.", "tool_calls": None}]
    browser = browse(played.end(), place="#/episode/retail-thousand")
    assert len(browser.all(".turn")) == 1000
    assert browser.press("G").place.endswith("/turn/999")
    painted = "(node) => node.checkVisibility({contentVisibilityAuto: true})"
    shown = browser.run(f"return [...document.querySelectorAll('.prose')].map({painted})")
    assert 0 < shown.count(True) < 100  # what is far from the screen is not painted
