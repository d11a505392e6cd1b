"""The transport settings of the mission, version ``tau3-text/1``.

Upstream tau2 leaves token and transport caps open; these are the frozen values every seat is asked with. A run that
was recorded elsewhere had caps that nobody wrote down: `OPEN`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

VERSION = "tau3-text/1"


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """What a seat is asked with, beside messages and tools.

    Attributes:
        context_tokens: Prompt limit; a reported prompt above it is a context overflow. None: unknown.
        output_tokens: Output limit by seat name, None: unknown.
        temperature: Always 0.0.
        top_p: Always 1.0.
        stop: No stop strings.
        request_s: Seconds for one whole request: connect, send, headers, last byte.
    """

    version: str = VERSION
    context_tokens: int | None = 32_768
    output_tokens: dict[str, int | None] = field(
        default_factory=lambda: {"learner": 4_096, "customer": 1_024, "judge": 4_096}
    )
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    request_s: float = 17.0

    def to_dict(self) -> dict:
        """Plain data, JSON-ready."""
        return asdict(self) | {"stop": list(self.stop)}


TAU3_TEXT_1 = TransportSettings()
OPEN = TransportSettings("unknown", None, dict.fromkeys(("learner", "customer", "judge")))


def of_header(settings: object) -> TransportSettings:
    """The settings whose rules hold in a cassette with these settings in its header."""
    version = settings.get("version") if isinstance(settings, dict) else None
    return OPEN if version == OPEN.version else TAU3_TEXT_1
