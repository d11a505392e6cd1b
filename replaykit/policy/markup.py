"""Tool-call markup that a provider failed to parse and left in the text to the user.

Only text that a model writes to *make* a call counts: the special tokens and tags of the common chat templates, a JSON
object with a tool's name and its arguments, or a line that is nothing but a call of one of the domain's tools. Talking
about tools ("I will use the tool_call feature", "I called get_user_details") does not. A message that quotes a markup
token literally, say in an explanation, does count; that limit is kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection

# The first matching name is reported; order goes from special to general.
_BAR = r"[|\uff5c]"  # DeepSeek writes its bars in full width
_MARKUPS: tuple[tuple[str, str], ...] = (
    (
        "deepseek",
        rf"<{_BAR}/?(?:DSML{_BAR})?(?:tool[\u2581_ ](?:calls?|outputs?)[\u2581_ ](?:begin|end)|tool[\u2581_ ]sep"
        rf"|function_calls){_BAR}>|<{_BAR}DSML{_BAR}",
    ),
    ("kimi", r"<\|tool_calls?_(?:section_)?(?:argument_)?(?:begin|end)\|>"),
    ("harmony", r"<\|channel\|>\s*(?:commentary|analysis)\s+to=|\bto=functions\.\w+|<\|(?:channel|constrain|call)\|>"),
    ("llama", r"<\|python_(?:tag|start|end)\|>"),
    ("mistral", r"\[/?TOOL_CALLS\]|\[ARGS\]\s*\{"),
    ("cohere", r"<\|(?:START|END)_ACTION\|>"),
    ("internlm", r"<\|action_(?:start|end)\|>|<\|plugin\|>"),
    ("phi", r"<\|/?tool_calls?\|>|<\|tool_call_(?:start|end)\|>|<\|tools_(?:prefix|suffix)\|>"),
    ("glm", r"</?arg_(?:key|value)>"),
    (
        "function_tag",
        r"<function\s*=\s*[\"']?[\w.-]+[\"']?\s*>|<function\s+name\s*=|</?function_?calls?>|</function>"
        r"|</?(?:start|end)_function_call>",
    ),
    ("hermes", r"</?(?:\w+:)?tool_?calls?>|<tool_call\s+name\s*=|</?(?:\w+:)?tool_use>"),
    (
        "invoke",
        r"</?(?:\w+:)?invoke(?:\s+name\s*=[^>]*)?>|</?(?:\w+:)?function_calls>|<(?:\w+:)?parameter(?:\s+name)?\s*=",
    ),
    ("qwen_agent", r"✿(?:FUNCTION|ARGS)✿"),
    ("functools", r"\bfunctools\s*\[\s*\{"),
    ("functionary", r"^>>>\s*\w+\s*\n\s*\{"),
    ("tool_code", r"```\s*tool_(?:code|call)s?\b"),
    ("react", r"^\s*Action\s*:\s*\w+\s*\n\s*Action Input\s*:"),
    (
        "json",
        r"\{\s*\"(?:name|tool|tool_name|function|function_name|recipient_name|action)\"\s*:\s*\"[\w.:-]+\"\s*,"
        r"\s*\"(?:arguments|parameters|args|input|tool_input|action_input|tool_args|kwargs)\"\s*:\s*(?:\{|\"\s*\{|null)"
        r"|\{\s*\"(?:arguments|parameters|args|tool_input|action_input)\"\s*:\s*(?:\{[^{}]*\}|\"[^\n]*\")\s*,"
        r"\s*\"(?:name|tool|tool_name|function|function_name)\"\s*:\s*\"[\w.:-]+\""
        r"|\"tool_calls\"\s*:\s*\[\s*\{"
        r"|\{\s*\"(?:id\"\s*:\s*\"[^\"]*\"\s*,\s*\")?type\"\s*:\s*\"(?:function|tool_use|function_call)\"\s*,"
        r"|\"function(?:_call|Call)?\"\s*:\s*\{\s*\"(?:name|arguments)\"\s*:",
    ),
)  # fmt: skip
_ANY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _MARKUPS), re.IGNORECASE | re.MULTILINE)
_HINTS = re.compile(r"[<\[{`✿]|to=functions|^>>>|Action Input", re.MULTILINE | re.IGNORECASE)
_CALL_LINE = re.compile(
    r"^[ \t]*(?:```\w*[ \t]*|\[[ \t]*|print\(|\w+[ \t]*=[ \t]*|await[ \t]+)*"
    r"(?:functions?\.|tools\.|default_api\.)?([A-Za-z_]\w*)\("
    r"(?:[ \t]*\w+[ \t]*=[^\n]*|[ \t]*\{[^\n]*|[ \t]*[\"'][^\n]*|[ \t]*)\)[\])`;, \t]*$",
    re.MULTILINE,
)


def find_markup(text: str, tool_names: Collection[str] = ()) -> str | None:
    """The name of the first tool-call markup in a text, or None.

    Args:
        text: What the learner wrote to the user.
        tool_names: The domain's tools, for calls written as a line of code.
    """
    if _HINTS.search(text):
        found = _ANY.search(text)
        if found:
            return found.lastgroup
    if "(" in text and any(name in tool_names for name in _CALL_LINE.findall(text)):
        return "code"
    return None
