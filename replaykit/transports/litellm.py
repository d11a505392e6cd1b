"""The optional transport ``litellm``: whatever the LiteLLM library can reach, as far as it can be watched.

LiteLLM opens its own connections, so no wire exchange is recorded, and a call that runs over its deadline is given up,
not cut. To see its wire, run the LiteLLM proxy and point ``openai-chat`` at it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from replaykit.errors import UsageError
from replaykit.seats import SeatFailure, SeatReply, TransportRequest, WireExchange
from replaykit.transports import pairing
from replaykit.transports.bodies import malformed
from replaykit.transports.failures import ErrorBody, classify, clean
from replaykit.transports.openai_chat import OpenAIChat, read_completion
from replaykit.transports.redaction import Secrets
from replaykit.transports.wire import Capabilities, mark_cut

_KINDS = {
    "ContextWindowExceededError": "context_overflow",
    "Timeout": "deadline",
    "APIConnectionError": "unreachable",
    "UnsupportedParamsError": "capability",
}


class LiteLLM(OpenAIChat):
    """One completion through the library, retries off.

    Args:
        base_url: Passed on as ``api_base``; "" leaves the address to the library.
        arguments: As for every wire; ``model`` is the library's name, e.g. ``openai/gpt-4.1``.

    Raises:
        UsageError: LiteLLM is not installed, or an argument cannot be used.
    """

    name = "litellm"
    wire_version = None

    def __init__(self, base_url: str = "", model: str | None = None, key: str | None = None, **arguments: Any) -> None:
        self._library = _import()
        super().__init__(base_url, model, key, **arguments)
        self._secrets = Secrets([key or ""])

    @property
    def capabilities(self) -> Capabilities:
        """As the chat wire, and that the wire itself is not seen."""
        unseen = {"wire_unseen": "the library makes the wire request, which is neither seen nor recorded"}
        return Capabilities(self.dialect.omit, super().capabilities.rewrites | unseen)

    def ask(self, request: TransportRequest, on_exchange: Callable[[WireExchange], None]) -> SeatReply:
        """Answer one request; ``on_exchange`` is never called."""
        pairing.check(request.messages)
        data = self._complete(self._keywords(request), request.deadline_s)
        return mark_cut(read_completion(data, self.provider), request.settings.get("max_output_tokens"))

    def _keywords(self, request: TransportRequest) -> dict[str, Any]:
        address = {"api_base": self.base_url} if self.base_url else {}
        key = {"api_key": self._key} if self._key else {}
        headers = {"extra_headers": self.extra_headers} if self.extra_headers else {}
        return (
            self.to_wire(request)
            | address
            | key
            | headers
            | {"timeout": request.deadline_s, "num_retries": 0, "max_retries": 0}
        )

    def _complete(self, keywords: Mapping[str, Any], deadline_s: float) -> dict[str, Any]:
        """Run the call in a thread of its own, since its time-outs hold for single operations only."""
        outcome: list[Any] = []

        def call() -> None:
            try:
                outcome.append(self._library.completion(**keywords))
            except Exception as error:  # the library's errors share no base class
                outcome.append(error)

        thread = threading.Thread(target=call, daemon=True, name="replaykit-litellm")
        thread.start()
        thread.join(deadline_s)
        if not outcome:
            raise SeatFailure("deadline", f"the {deadline_s:g} seconds of the whole request ran out")
        if isinstance(outcome[0], Exception):
            raise self._failure(outcome[0])
        return _plain(outcome[0])

    def _failure(self, error: Exception) -> SeatFailure:
        status = getattr(error, "status_code", None)
        status = status if isinstance(status, int) else None
        kind = _KINDS.get(type(error).__name__) or classify(status or 500, ErrorBody(message=str(error)))
        return SeatFailure(
            kind, f"LiteLLM reports {type(error).__name__}: {self._secrets.redact(clean(str(error)))}", status
        )

    def _address(self, base_url: str) -> str:
        return super()._address(base_url) if base_url else ""


def _plain(response: Any) -> dict[str, Any]:
    data = response.model_dump() if hasattr(response, "model_dump") else response
    if not isinstance(data, dict):
        raise malformed("LiteLLM returned no completion", None)
    return data


def _import() -> Any:
    # Without this, importing the library fetches a price list from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm
    except ImportError as error:
        raise UsageError("the transport litellm needs the LiteLLM library: install replaykit[litellm]") from error
    litellm.suppress_debug_info = True  # it prints advice on standard output otherwise
    return litellm
