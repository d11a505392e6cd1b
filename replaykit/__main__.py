"""``python -m replaykit``."""

from replaykit.cli import main

main()
