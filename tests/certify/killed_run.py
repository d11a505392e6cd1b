"""A certification in a process of its own, to be killed by the test."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from certify.conftest import certify

if __name__ == "__main__":
    certify(Path(sys.argv[1]))
