"""What the packaged 0.2 line needs to behave as tau2 1.0.1 for airline and retail text episodes.

Each correction has a name that is part of the engine's identity. Tasks, policies, databases and splits are corrected
by reading other files (see `data`), guideline white space in `data.guidelines`, and the semantics of a model call in
`seam`; what is left is code.
"""

from __future__ import annotations

from typing import Any

from replaykit.engine.native import Native

NAMES = (
    "data: tasks, policies, databases and splits of 1.0.1",
    "retail tool get_item_details",
    "evaluation by reward basis",
    "guideline white space",
    "native generate semantics",
    "state replay of mutating calls only",
)


def retail_tools(native: Native) -> Any:
    """The retail toolkit with ``get_item_details`` in upstream's place: after ``get_product_details``.

    The order of tools is part of every learner request. Its texts are the tool's published interface.
    """
    base, is_tool, read = native.retail_tools.RetailTools, native.toolkit.is_tool, native.toolkit.ToolType.READ
    variant = native.retail_data.Variant

    def get_item_details(self, item_id):
        for product in self.db.products.values():
            if item_id in product.variants:
                return product.variants[item_id]
        raise ValueError("Item not found")

    get_item_details.__doc__ = (
        "Get the inventory details of an item.\n\nArgs:\n    item_id: The item id, such as '6086499569'. "
        "Be careful the item id is different from the product id.\n"
    )
    get_item_details.__annotations__ = {"item_id": str, "return": variant}
    get_item_details.__qualname__ = "RetailTools.get_item_details"
    toolkit = type("RetailTools", (base,), {"get_item_details": is_tool(read)(get_item_details)})
    toolkit.__qualname__ = base.__qualname__
    toolkit._func_tools = property(lambda self: dict(ordered))
    ordered = _insert_after(_functions(base), "get_product_details", "get_item_details", toolkit.get_item_details)
    return toolkit


def _functions(toolkit: Any) -> dict[str, Any]:
    return toolkit._func_tools.fget(toolkit.__new__(toolkit))


def _insert_after(items: dict[str, Any], place: str, name: str, value: Any) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in items.items():
        result[key] = item
        if key == place:
            result[name] = value
    return result


def mutating_only(native: Native, trajectory: list, write_tools: frozenset[str]) -> list:
    """The calls of a trajectory that change state, with their results: what 1.0.1 re-executes to rebuild a state.

    The 0.2 line re-executes reads and unknown tools too, which 1.0.1 skips.
    """
    kept, results = [], iter([m for m in trajectory if m.role == "tool"])
    for message in trajectory:
        calls = getattr(message, "tool_calls", None) if message.role != "tool" else None
        for call in calls or ():
            result = next(results)
            if call.name in write_tools:
                kept += [native.messages.AssistantMessage(role="assistant", tool_calls=[call]), result]
    return kept
