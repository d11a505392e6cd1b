"""What is fixed before a run: clocks, tolerances, declared deviations, and which checks do not apply, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from replaykit import canonical
from replaykit.budget import Budget

ID = "tau3-three-seats"
VERSION = "1"
# Clock of each kind of limit, as a factor on real time.
SCALES = {
    "full": {"request": "1", "connection": "1", "simulation": "1", "wall": "1/60"},
    "fast": {"request": "1/17", "connection": "1/180", "simulation": "1/262", "wall": "1/4000"},
}
BEHIND_A_GATEWAY = (
    "C37",
    "a gateway has one address, so calls of several seats at the same time cannot be told apart behind it",
)
TOLERANCE_MS = {"full": 1000, "fast": 500}
STALL_MS = {"full": 3000, "fast": 500}


@dataclass(frozen=True)
class Profile:
    """The terms of one certification.

    Attributes:
        mode: ``full`` or ``fast``; fast never qualifies.
        wire: One of the four wires.
        not_carried: Settings that the transport declares it does not send.
        rewrites: Changes it declares, by name.
        sees_wire: Whether the transport reports its wire exchanges.
        dialect: Options of the wire.
        not_applicable: Check -> reason.
        gateway: Whether something stands between transport and control that may write bodies anew.
    """

    mode: str
    wire: str
    not_carried: tuple[str, ...] = ()
    rewrites: Mapping[str, str] = field(default_factory=dict)
    streaming: bool = False
    sees_wire: bool = True
    dialect: Mapping[str, Any] = field(default_factory=dict)
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    gateway: bool = False

    @property
    def request_scale(self) -> float:
        """Factor on request deadlines and on the control's pauses."""
        return float(Fraction(SCALES[self.mode]["request"]))

    @property
    def connection_scale(self) -> float:
        """Factor on the age of connections."""
        return float(Fraction(SCALES[self.mode]["connection"]))

    @property
    def simulation_scale(self) -> float:
        """Factor on the simulation's own time."""
        return float(Fraction(SCALES[self.mode]["simulation"]))

    @property
    def wall_s(self) -> float:
        """Seconds of the wall limit in the queue of C44."""
        return Budget().wall_s * float(Fraction(SCALES[self.mode]["wall"]))

    def tolerance_us(self, stall_us: int) -> int:
        """How late a deadline may be noticed on a machine that stood still for so long, up to a limit."""
        return TOLERANCE_MS[self.mode] * 1000 + min(max(stall_us, 0), STALL_MS[self.mode] * 1000)

    def to_dict(self) -> dict:
        """Plain data without floats."""
        budget = {k: v for k, v in Budget().to_dict().items() if k == "requests"}
        budget |= {k.replace("_s", "_ms"): round(v * 1000) for k, v in Budget().to_dict().items() if k.endswith("_s")}
        return {
            "id": ID,
            "version": VERSION,
            "mode": self.mode,
            "wire": self.wire,
            "scales": SCALES[self.mode],
            "tolerance_ms": TOLERANCE_MS[self.mode],
            "stall_ms": STALL_MS[self.mode],
            "budgets": budget | {"requests_counted": "wire attempts of all three seats"},
            "retry_table": {"any": 1},
            "not_carried": list(self.not_carried),
            "rewrites": dict(self.rewrites),
            "streaming": self.streaming,
            "sees_wire": self.sees_wire,
            "dialect": dict(self.dialect),
            "not_applicable": dict(self.not_applicable),
            "gateway": self.gateway,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the profile."""
        return canonical.digest(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Profile:
        """Undo `to_dict`.

        Raises:
            KeyError, TypeError: the data is not a profile.
        """
        names = ("mode", "wire", "rewrites", "streaming", "sees_wire", "dialect", "not_applicable", "gateway")
        return cls(not_carried=tuple(data["not_carried"]), **{n: data[n] for n in names})


def of_subject(identity: Mapping[str, Any], mode: str, wire: str | None = None, gateway: bool = False) -> Profile:
    """The profile of a transport from what it says of itself.

    Args:
        identity: See `Subject.identity`.
        wire: Overrides the wire it names.
        gateway: Whether a gateway is certified with it.
    """
    declared = identity.get("capabilities") or {}
    rewrites = dict(declared.get("rewrites") or {})
    streaming = bool(declared.get("streaming"))
    return Profile(
        mode,
        wire or identity.get("wire") or "openai-chat",
        tuple(declared.get("not_carried") or ()),
        rewrites,
        streaming,
        "wire_unseen" not in rewrites,
        _known_wire_dialect(identity),
        dict([BEHIND_A_GATEWAY]) if gateway else {},
        gateway,
    )


def _known_wire_dialect(identity: Mapping[str, Any]) -> dict:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in (identity.get("dialect") or {}).items()}
