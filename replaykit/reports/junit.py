"""JUnit XML: one test case a cassette."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

# XML 1.0 cannot hold these even escaped; model output has them.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Text that XML can hold."""
    return _FORBIDDEN.sub("\ufffd", text)


def replay(outcomes: list[Any]) -> str:
    """A replay's outcomes."""
    cases = [_case(o) for o in outcomes]
    suite = ElementTree.Element("testsuite", name="replaykit replay", tests=str(len(cases)))
    suite.extend(cases)
    for tag in ("failure", "error", "skipped"):
        suite.set(tag + ("s" if tag != "skipped" else ""), str(sum(c.find(tag) is not None for c in cases)))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(outcome: Any) -> ElementTree.Element:
    report = outcome.report
    case = ElementTree.Element(
        "testcase", classname=clean(report.panel if report else "replaykit"), name=clean(outcome.cassette)
    )
    if report is None:
        ElementTree.SubElement(case, "error", message=clean(outcome.error))
    elif report.status == "diverged":
        first = report.divergences[0]
        failure = ElementTree.SubElement(case, "failure", message=clean(first.sentence), type=first.kind)
        failure.text = clean(f"pointer: {first.pointer}\nrecorded: {first.recorded!r}\nnow: {first.actual!r}"[:4000])
    elif report.status == "incomplete":
        ElementTree.SubElement(case, "failure", message="the recording is interrupted", type="incomplete")
    return case
