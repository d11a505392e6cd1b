"""What the policy rules must know about a domain and a scenario, beside the trajectory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

TRANSFER_TOOL = "transfer_to_human_agents"

#: Tools that authenticate a user, for the domains whose policy asks for it before a write.
AUTHENTICATION_TOOLS: Mapping[str, frozenset[str]] = {
    "retail": frozenset({"find_user_id_by_email", "find_user_id_by_name_zip"}),
}


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """A domain's tools and a scenario's reference solution.

    Attributes:
        domain: ``airline`` or ``retail``.
        write_tools: Names of the tools of type WRITE, from the engine's toolkit at run time.
        tool_names: Names of all tools the learner has.
        reference_actions: ``{"name": str, "arguments": dict, "requestor": str, "compare_args": list | None}`` each.
    """

    domain: str
    write_tools: frozenset[str]
    tool_names: frozenset[str]
    reference_actions: tuple[dict, ...] = ()

    @property
    def authentication_tools(self) -> frozenset[str] | None:
        """The tools that authenticate a user, or None where the policy has no such rule."""
        return AUTHENTICATION_TOOLS.get(self.domain)

    def to_dict(self) -> dict:
        """Plain data with sorted names; `from_dict` undoes it."""
        return {
            "domain": self.domain,
            "write_tools": sorted(self.write_tools),
            "tool_names": sorted(self.tool_names),
            "reference_actions": [dict(action) for action in self.reference_actions],
        }

    @classmethod
    def from_dict(cls, data: Mapping) -> PolicyContext:
        """Undo `to_dict`.

        Raises:
            KeyError, TypeError: the data is not a context.
        """
        return cls(
            data["domain"],
            frozenset(data["write_tools"]),
            frozenset(data["tool_names"]),
            tuple(data["reference_actions"]),
        )


def matches_action(action: Mapping, name: str, arguments: Mapping) -> bool:
    """Whether a call matches a reference action, by the comparison of tau2's action evaluator.

    Without ``compare_args`` the call's own keys are compared, so an argument that the call leaves out is not missed
    and one that the action lacks fails. An empty list of keys matches any arguments. Values are equal as Python has
    it: 1, 1.0 and True are, lists in another order are not. The requestor is not compared.
    """
    if action["name"] != name:
        return False
    keys = action.get("compare_args")
    keys = arguments.keys() if keys is None else keys
    if not keys:
        return True
    return _only(arguments, keys) == _only(action["arguments"], keys)


def on_reference(actions: Iterable[Mapping], name: str, arguments: Mapping) -> bool:
    """Whether a call matches any action of the reference solution."""
    return any(matches_action(action, name, arguments) for action in actions)


def _only(arguments: Mapping, keys: Iterable[str]) -> dict:
    return {key: arguments[key] for key in keys if key in arguments}
