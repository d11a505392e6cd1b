"""A real browser for the viewer's tests, and made-up episodes to show in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..reports.conftest import cancelled, domains, script

__all__ = ["cancelled", "domains", "script"]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1440,900",
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory) -> Iterator:
    """A headless browser, driven through its own driver on loopback; tests skip where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    places = [shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")]
    if None in places:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = places[0]
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(places[1]))
    yield driver
    driver.quit()


class Browser:
    """The viewer in a browser, in the words of the tests."""

    def __init__(self, driver, url: str) -> None:
        self.driver, self.url = driver, url

    def open(self, place: str = "") -> Browser:
        """Load the page afresh at a place such as ``#/episode/…``."""
        self.driver.get("about:blank")
        self.driver.get(self.url + place)
        return self

    def press(self, *keys: str) -> Browser:
        """Type keys where the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()
        return self

    def all(self, selector: str) -> list:
        """The elements of a selector."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str):
        """The element of a selector."""
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        """What the elements of a selector hold as text."""
        return self.run(f"return [...document.querySelectorAll({selector!r})].map((node) => node.textContent)")

    def run(self, script: str, *arguments: object):
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    @property
    def place(self) -> str:
        """The place in the address."""
        return self.run("return location.hash")

    def complaints(self) -> list[str]:
        """What the console says, the content policy's refusals included; emptied by asking."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture
def written(tmp_path, domains):
    """Write cassettes as one file; its path."""
    from replaykit.reports.viewer.shelf import Shelf

    def write(*paths: Path) -> Path:
        out = tmp_path / "view.html"
        out.write_text(Shelf(paths, domains).html(), encoding="utf-8")
        return out

    return write


@pytest.fixture
def browse(chromium, written):
    """Show cassettes in the browser, from a file without a server."""

    def show(*paths: Path, place: str = "") -> Browser:
        browser = Browser(chromium, written(*paths).as_uri()).open(place)
        browser.complaints()
        return browser

    return show
