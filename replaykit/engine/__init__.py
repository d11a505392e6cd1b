"""The tau2 engine: the only place that imports tau2, and only when an episode starts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replaykit.engine.tau2_engine import Tau2Engine

_lock = threading.Lock()
_engine: Tau2Engine | None = None


def load() -> Tau2Engine:
    """The engine of this process, loaded on first use.

    Raises:
        EngineNotReady: there is none, or it cannot be trusted.
    """
    global _engine
    from replaykit.engine import locate
    from replaykit.engine.tau2_engine import Tau2Engine

    with _lock:
        if _engine is None:
            _engine = Tau2Engine(locate.find())
        return _engine
