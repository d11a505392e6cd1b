"""Requests and replies that several tests share; invented."""

from __future__ import annotations

import json

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "move_booking",
            "description": "Move a booking.",
            "parameters": {
                "type": "object",
                "$defs": {"Day": {"type": "string", "enum": ["Fri", "Sat"]}},
                "properties": {
                    "code": {"type": "string", "description": "Bücher-Code"},
                    "day": {"$ref": "#/$defs/Day"},
                    "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                },
                "required": ["code", "day"],
            },
        },
    },
    {
        "type": "function",
        "function": {"name": "list_all", "description": "List.", "parameters": {"type": "object", "properties": {}}},
    },
]


def call(id: str, name: str = "move_booking", arguments: str = '{"code": "K7", "day": "Fri"}') -> dict:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(id: str, content: str = "moved") -> dict:
    return {"role": "tool", "tool_call_id": id, "content": content}


HISTORY = [
    {"role": "system", "content": "Policy é 😀 \u2028 \r\n"},
    {"role": "assistant", "content": "Hi! How can I help you today?"},
    {"role": "user", "content": "  move it  "},
    {"role": "assistant", "content": None, "tool_calls": [call("call_1"), call("call_2", "list_all", "{}")]},
    result("call_1"),
    result("call_2", ""),
    {"role": "assistant", "content": "Done.\n"},
    {"role": "user", "content": "thanks"},
]

CHAT = {
    "id": "chatcmpl-x1",
    "object": "chat.completion",
    "created": 1790000000,
    "model": "m-2026",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": None,
            "message": {
                "role": "assistant",
                "content": "On it.",
                "refusal": None,
                "tool_calls": [call("call_b1", arguments='{"code":"K7", "day":"Fri"}')],
            },
        }
    ],
    "usage": {"prompt_tokens": 91, "completion_tokens": 22, "total_tokens": 113},
}

RESPONSES = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1790000000,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "m-2026",
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA"},
        {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "On it.", "annotations": []}],
        },
        {
            "id": "fc_1",
            "type": "function_call",
            "status": "completed",
            "call_id": "call_b1",
            "name": "move_booking",
            "arguments": '{"code":"K7", "day":"Fri"}',
        },
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 91,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 22,
        "output_tokens_details": {"reasoning_tokens": 8},
        "total_tokens": 113,
    },
}

ANTHROPIC = {
    "id": "msg_01x",
    "type": "message",
    "role": "assistant",
    "model": "m-2026",
    "content": [
        {"type": "thinking", "thinking": "", "signature": "EqQB"},
        {"type": "text", "text": "On it."},
        {"type": "tool_use", "id": "call_b1", "name": "move_booking", "input": {"code": "K7", "day": "Fri"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 81, "cache_creation_input_tokens": 4, "cache_read_input_tokens": 6, "output_tokens": 22},
}

GEMINI = {
    "candidates": [
        {
            "index": 0,
            "finishReason": "STOP",
            "content": {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"text": "On it."},
                    {
                        "functionCall": {"id": "call_b1", "name": "move_booking", "args": {"code": "K7", "day": "Fri"}},
                        "thoughtSignature": "c2ln",
                    },
                ],
            },
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 91,
        "candidatesTokenCount": 14,
        "thoughtsTokenCount": 8,
        "totalTokenCount": 113,
    },
    "modelVersion": "m-2026",
    "responseId": "abc",
}

REPLIES = {
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "anthropic-messages": ANTHROPIC,
    "gemini-generate": GEMINI,
}


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()
