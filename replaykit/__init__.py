"""replaykit records, replays, diffs and certifies tau2-bench episodes.

The public names are listed in `PUBLIC` and loaded when they are first used, so that importing replaykit imports
neither tau2 nor an HTTP library.
"""

from __future__ import annotations

from replaykit._version import __version__

# public name -> module that holds it
PUBLIC = {
    "AgentLoop": "replaykit.agentloop",
    "Arm": "replaykit.arm",
    "AsyncAgentLoop": "replaykit.agentloop",
    "Cassette": "replaykit.cassette",
    "Diagnostic": "replaykit.episode",
    "Difference": "replaykit.difference",
    "Divergence": "replaykit.divergence",
    "EpisodeResult": "replaykit.episode",
    "EvidenceError": "replaykit.errors",
    "Done": "replaykit.agentloop",
    "EngineNotReady": "replaykit.errors",
    "Fleet": "replaykit.fleet",
    "Learner": "replaykit.agentloop",
    "LostTurn": "replaykit.episode",
    "OfflineViolation": "replaykit.errors",
    "Panel": "replaykit.fleet",
    "ReplayReport": "replaykit.divergence",
    "ReplaykitError": "replaykit.errors",
    "ReplyCall": "replaykit.seats",
    "ReplySource": "replaykit.seats",
    "SeatFailure": "replaykit.seats",
    "SeatReply": "replaykit.seats",
    "SeatRequest": "replaykit.seats",
    "TransportRequest": "replaykit.seats",
    "UsageError": "replaykit.errors",
    "WireExchange": "replaykit.seats",
    "load_engine": "replaykit.engine:load",
    "read_cassette": "replaykit.store.reader:read",
    "read_fleet": "replaykit.store.fleet_file:read",
    "replay_cassette": "replaykit.replay:replay",
}

__all__ = ["__version__", *PUBLIC]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    import importlib

    if name not in PUBLIC:
        raise AttributeError(f"module 'replaykit' has no public name {name!r}")
    module, _, attribute = PUBLIC[name].partition(":")
    return getattr(importlib.import_module(module), attribute or name)
