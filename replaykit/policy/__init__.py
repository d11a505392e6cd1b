"""What a learner did, by the rules of the domain policies: pure functions over the normalised trajectory."""

from replaykit.policy.confirmation import Confirmation, confirmation, confirms
from replaykit.policy.context import TRANSFER_TOOL, PolicyContext, matches_action
from replaykit.policy.counts import counts
from replaykit.policy.format_errors import KINDS, FormatError
from replaykit.policy.state import PolicyState, Write
from replaykit.policy.timeline import final_state, first_parting, follow_episode, policy_states, policy_timeline
from replaykit.policy.tracker import PolicyTracker
from replaykit.policy.violations import DEFAULT_WEIGHTS, RULES, Violation, penalty

__all__ = [
    "DEFAULT_WEIGHTS",
    "KINDS",
    "RULES",
    "TRANSFER_TOOL",
    "Confirmation",
    "FormatError",
    "PolicyContext",
    "PolicyState",
    "PolicyTracker",
    "Violation",
    "Write",
    "confirmation",
    "confirms",
    "counts",
    "final_state",
    "first_parting",
    "follow_episode",
    "matches_action",
    "penalty",
    "policy_states",
    "policy_timeline",
]
