"""How long the machine stood still: a late deadline on a starved machine is not the transport's doing."""

from __future__ import annotations

import threading
import time
from types import TracebackType

_BEAT_S = 0.02


class Heartbeat:
    """Beats in a thread of its own and remembers the longest gap.

    Attributes:
        stall_us: Microseconds by which the longest gap was too long.
    """

    def __init__(self) -> None:
        self.stall_us = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name="heartbeat")

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(1.0)

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._over.wait(_BEAT_S):
            now = time.monotonic()
            self.stall_us = max(self.stall_us, round((now - last - _BEAT_S) * 1e6))
            last = now
