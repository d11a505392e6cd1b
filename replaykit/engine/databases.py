"""Domain databases: parsed once a process, given out as views that an episode may change."""

from __future__ import annotations

import json
import threading
from typing import Any


class Databases:
    """The untouched database of one domain.

    Args:
        database_class: tau2's own database model.
        text: The verified database file.
    """

    def __init__(self, database_class: Any, text: bytes) -> None:
        self._class, self._text = database_class, text
        self._lock = threading.Lock()

    def view(self) -> Any:
        """A database an episode may change; tau2's own class."""
        with self._lock:
            return self._class.model_validate(json.loads(self._text))
