# ruff: noqa: RUF001 - models write such characters
"""Texts to the user, with and without tool-call markup left in them."""

import time

import pytest

from replaykit.policy.markup import find_markup

TOOLS = frozenset({"get_user_details", "cancel_reservation", "calculate"})

MARKUP = {
    "hermes": '<tool_call>\n{"name": "get_user_details", "arguments": {"user_id": "mia_li_3668"}}\n</tool_call>',
    "hermes after prose": 'Let me look that up. <tool_call>{"name": "get_user_details"}',
    "hermes, closing tag only": "{...}</tool_call>",
    "hermes, upper case": "<TOOL_CALL>{}</TOOL_CALL>",
    "plural tag": '<tool_calls>[{"name": "x"}]</tool_calls>',
    "nemotron": '<TOOLCALL>[{"name": "x", "arguments": {}}]</TOOLCALL>',
    "qwen3 coder": "<tool_call>\n<function=get_user_details>\n<parameter=user_id>\nmia\n</parameter>\n</function>",
    "function tag": '<function=get_user_details>{"user_id": "mia"}</function>',
    "function tag in quotes": '<function="get_user_details">{"user_id": "mia"}',
    "function tag with name": '<function name="get_user_details">{"user_id": "mia"}',
    "function call tag": '<function_call>{"name": "x"}</function_call>',
    "functioncall tag": '<functioncall> {"name": "x"}',
    "gemma start tag": "<start_function_call>call:get_user_details{user_id:mia}<end_function_call>",
    "llama python tag": '<|python_tag|>{"name": "get_user_details", "parameters": {"user_id": "mia"}}',
    "llama 4 python start": "<|python_start|>[get_user_details(user_id='mia')]<|python_end|>",
    "llama json": '{"name": "get_user_details", "parameters": {"user_id": "mia"}}',
    "llama typed json": '{"type": "function", "name": "get_user_details", "parameters": {"user_id": "mia"}}',
    "mistral": '[TOOL_CALLS][{"name": "get_user_details", "arguments": {"user_id": "mia"}}]',
    "mistral with arguments": '[TOOL_CALLS]get_user_details[ARGS]{"user_id": "mia"}',
    "mistral, token eaten": 'get_user_details[ARGS]{"user_id": "mia"}',
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_user_details",
    "deepseek, ascii bars": "<|tool▁calls▁begin|><|tool▁call▁begin|>function",
    "deepseek, underscores": "<|tool_calls_begin|>",
    "deepseek end only": "```<｜tool▁call▁end｜>",
    "deepseek dsml": '<｜DSML｜function_calls><｜DSML｜invoke name="get_user_details">',
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_user_details:0<|tool_call_argument_begin|>{}",
    "kimi call only": "<|tool_call_begin|>functions.get_user_details:0",
    "kimi end": "{}<|tool_call_end|><|tool_calls_section_end|>",
    "glm": "<tool_call>get_user_details\n<arg_key>user_id</arg_key>\n<arg_value>mia</arg_value>\n</tool_call>",
    "glm, outer tag eaten": "get_user_details\n<arg_key>user_id</arg_key>\n<arg_value>mia</arg_value>",
    "harmony": '<|channel|>commentary to=functions.get_user_details <|constrain|>json<|message|>{"user_id": "mia"}',
    "harmony with start": "<|start|>assistant<|channel|>commentary to=functions.calculate<|message|>{}<|call|>",
    "harmony, tokens eaten": 'commentary to=functions.get_user_details json{"user_id": "mia"}',
    "harmony channel": "<|channel|>final<|message|>Hello",
    "cohere": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "x", "parameters": {}}]<|END_ACTION|>',
    "internlm": '<|action_start|><|plugin|>{"name": "x", "parameters": {}}<|action_end|>',
    "phi": '<|tool_call|>[{"name": "x", "arguments": {}}]<|/tool_call|>',
    "granite": '<|tool_call|>{"name": "x", "arguments": {}}',
    "lfm": "<|tool_call_start|>[get_user_details(user_id='mia')]<|tool_call_end|>",
    "apertus": '<|tools_prefix|>[{"get_user_details": {"user_id": "mia"}}]<|tools_suffix|>',
    "minimax": '<minimax:tool_call>\n<invoke name="get_user_details">',
    "seed": "<seed:tool_call><function=get_user_details>",
    "invoke": '<function_calls>\n<invoke name="get_user_details">\n<parameter name="user_id">mia</parameter>',
    "invoke with prefix": '<x:function_calls><x:invoke name="get_user_details">',
    "tool use": "<tool_use>get_user_details</tool_use>",
    "functools": 'functools[{"name": "get_user_details", "arguments": {"user_id": "mia"}}]',
    "functionary": '>>>get_user_details\n{"user_id": "mia"}',
    "qwen agent": '✿FUNCTION✿: get_user_details\n✿ARGS✿: {"user_id": "mia"}',
    "tool code fence": "```tool_code\nprint(get_user_details(user_id='mia'))\n```",
    "react": 'Thought: look it up\nAction: get_user_details\nAction Input: {"user_id": "mia"}',
    "json fence": '```json\n{"name": "get_user_details", "arguments": {"user_id": "mia"}}\n```',
    "json in prose": 'I call {"name": "get_user_details", "arguments": {"user_id": "mia"}} now.',
    "json list": '[{"name": "get_user_details", "arguments": {"user_id": "mia"}}]',
    "json, arguments first": '{"arguments": {"user_id": "mia"}, "name": "get_user_details"}',
    "json, arguments as text": '{"name": "get_user_details", "arguments": "{\\"user_id\\": \\"mia\\"}"}',
    "json, arguments null": '{"name": "list_all_airports", "arguments": null}',
    "json tool key": '{"tool": "get_user_details", "args": {"user_id": "mia"}}',
    "json action key": '{"action": "get_user_details", "action_input": {"user_id": "mia"}}',
    "json function key": '{"function": "get_user_details", "parameters": {"user_id": "mia"}}',
    "openai function": '{"id": "c1", "type": "function", "function": {"name": "x", "arguments": "{}"}}',
    "openai tool_calls": '{"tool_calls": [{"function": {"name": "x", "arguments": "{}"}}]}',
    "openai function_call": '{"function_call": {"name": "get_user_details", "arguments": "{}"}}',
    "gemini functionCall": '{"functionCall": {"name": "get_user_details", "args": {}}}',
    "anthropic tool_use": '{"type": "tool_use", "id": "t1", "name": "get_user_details", "input": {}}',
    "a line of code": "get_user_details(user_id='mia_li_3668')",
    "a line of code in a list": "[get_user_details(user_id='mia'), calculate(expression='1+1')]",
    "a line of code in a fence": "```python\nuser = get_user_details(user_id='mia')\n```",
    "a printed call": "print(get_user_details(user_id='mia'))",
    "a call without arguments": "get_user_details()",
    "a call of a namespace": "functions.get_user_details(user_id='mia')",
}

PLAIN = {
    "a greeting": "Hi! How can I help you today?",
    "talk of a tool_call": "I made a tool_call to look up your account.",
    "talk of tool calls": "I can make only one tool call at a time.",
    "a tool's name": "I used get_user_details to find your profile.",
    "a tool's name with empty brackets in prose": "I used get_user_details() to find your profile.",
    "a tool's name with arguments in prose": "Calling get_user_details(user_id) did not help, sorry.",
    "talk of functions": "The function of this step is to confirm your identity.",
    "a placeholder in angle brackets": "Please send it as <first name> <last name>.",
    "html": "<b>Total</b>: $50<br>",
    "an e-mail address in brackets": "Write to <help@example.com>.",
    "a list in brackets": "Options: [economy, business]",
    "a markdown link": "[our policy](https://example.com/policy)",
    "a json object of an order": '{"order_id": "#W1", "status": "pending"}',
    "a json object with a name": '{"name": "Mia Li", "address": {"city": "Boston"}}',
    "a code fence without a call": "```\nTotal: 50\n```",
    "a json fence without a call": '```json\n{"name": "Mia Li", "dob": "1990-04-05"}\n```',
    "arguments in prose": "There are good arguments for both options.",
    "an action in prose": "Action: cancel the flight. Input needed from you.",
    "a calculation": "calculate: (2 * 50) + 30 = 130",
    "a formula alone on a line": "(2 * 50) + 30",
    "an unknown function on a line": "refund(amount=50)",
    "a quoted email chain": ">>> On Monday you wrote:\nhello",
    "bars": "JFK | SEA | 2024-05-20",
    "an arrow": "JFK -> SEA <-> LAX",
    "channel in prose": "You can use any channel to reach us.",
    "invoke in prose": "I will invoke the refund policy here.",
    "brackets in capitals": "[IMPORTANT] The fee is $50.",
    "parameter in prose": "<parameters> is not something you need to fill in.",
    "the transfer sentence": "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.",
    "a json schema of a passenger": '{"first_name": "Mia", "last_name": "Li", "type": "adult"}',
    "nothing": "",
}


@pytest.mark.parametrize("case", MARKUP)
def test_markup_left_in_a_text_is_found(case):
    assert find_markup(MARKUP[case], TOOLS) is not None


@pytest.mark.parametrize("case", PLAIN)
def test_a_plain_text_holds_no_markup(case):
    assert find_markup(PLAIN[case], TOOLS) is None


@pytest.mark.parametrize("family", ["hermes", "deepseek", "kimi", "harmony", "glm"])
def test_the_markup_is_named_after_its_family(family):
    expected = "hermes" if family == "glm" else family
    assert find_markup(MARKUP[family], TOOLS) == expected


def test_a_line_of_code_counts_only_for_a_tool_of_the_domain():
    assert find_markup("get_user_details(user_id='mia')", TOOLS) == "code"
    assert find_markup("get_user_details(user_id='mia')", frozenset()) is None


HOSTILE = ['{"name": "', "<", "{" * 50, "a = ", "```", "[ARGS]", '{"arguments": {', "get_user_details("]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_text_is_searched_quickly(piece):
    start = time.perf_counter()
    find_markup(piece * (16_000 // len(piece)), TOOLS)
    assert time.perf_counter() - start < 5.0
