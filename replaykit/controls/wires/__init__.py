"""The four wires as a provider speaks them."""

from replaykit.controls.wires import anthropic_messages, gemini_generate, openai_chat, openai_responses
from replaykit.controls.wires.wire import Asked, RequestLine, Stamp, Wire, WireRefusal

_MODULES = (openai_chat, openai_responses, anthropic_messages, gemini_generate)
WIRES: dict[str, Wire] = {module.WIRE.name: module.WIRE for module in _MODULES}

__all__ = ["WIRES", "Asked", "RequestLine", "Stamp", "Wire", "WireRefusal"]
