"""A comparison as JUnit XML: one test case a pair."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from replaykit.reports import diff_terminal
from replaykit.reports.junit import clean


def document(report: Any) -> str:
    """The XML of a `DiffReport`."""
    cases = [_case(pair) for pair in report.pairs]
    counts = {tag: sum(case.find(tag) is not None for case in cases) for tag in ("failure", "error")}
    suite = ElementTree.Element(
        "testsuite",
        name="replaykit diff",
        tests=str(len(cases)),
        failures=str(counts["failure"]),
        errors=str(counts["error"]),
    )
    suite.extend(cases)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(pair: Any) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", classname=clean(pair.panel or "replaykit"), name=clean(f"{pair.left} | {pair.right}")
    )
    if pair.status == "error":
        ElementTree.SubElement(case, "error", message=clean(pair.error))
    elif pair.status == "different":
        failure = ElementTree.SubElement(
            case, "failure", message=clean(f"first difference: {pair.first.where}"), type=pair.first.kind
        )
        failure.text = clean("\n".join(diff_terminal._pair(pair, False, diff_terminal.plain)))
    elif pair.status == "unfinished":
        ElementTree.SubElement(case, "failure", message=clean("; ".join(pair.unfinished)), type="unfinished")
    return case
