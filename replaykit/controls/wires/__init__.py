"""The four wires as a provider speaks them."""

from replaykit.controls.wires import openai_chat
from replaykit.controls.wires.wire import Asked, RequestLine, Stamp, Wire, WireRefusal

WIRES: dict[str, Wire] = {module.WIRE.name: module.WIRE for module in (openai_chat,)}

__all__ = ["WIRES", "Asked", "RequestLine", "Stamp", "Wire", "WireRefusal"]
