"""The peer of a replay: tau2's own runner and evaluation, with nothing of replaykit in the process.

Reads ``{"episodes": [{"domain", "task", "replies": [{"content", "tool_calls"}, ...]}, ...]}`` from standard input and
answers every model call with the next reply, as the model library's own response object. Prints
``{"import_s", "import_cpu_s", "episodes": [{"wall_s", "cpu_s", "messages", "reward"}, ...]}``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def main() -> None:
    """Play the episodes."""
    work = json.load(sys.stdin)
    wall, cpu = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        from tau2 import run
    imported = {"import_s": time.perf_counter() - wall, "import_cpu_s": time.process_time() - cpu}
    with contextlib.redirect_stdout(io.StringIO()):
        episodes = [_played(run, episode) for episode in work["episodes"]]
    print(json.dumps({**imported, "episodes": episodes}))


def _played(run: object, episode: dict) -> dict:
    from loguru import logger
    from tau2.data_model.tasks import Task
    from tau2.evaluator.evaluator import EvaluationType
    from tau2.utils import llm_utils

    logger.remove()
    replies = iter(episode["replies"])
    llm_utils.completion = lambda **asked: _response(next(replies, {"content": '{"results": []}', "tool_calls": None}))
    task = Task.model_validate(episode["task"])
    settings = {
        "llm_agent": "gpt-4.1",
        "llm_args_agent": {"temperature": 0.0},
        "llm_user": "gpt-4.1",
        "llm_args_user": {"temperature": 0.0},
    }
    wall, cpu = time.perf_counter(), time.process_time()
    run_task = run.run_task  # type: ignore[attr-defined]
    done = run_task(
        episode["domain"], task, "llm_agent", "user_simulator", **settings,
        max_steps=200, evaluation_type=EvaluationType.ALL_WITH_NL_ASSERTIONS, seed=626729,
    )  # fmt: skip
    spent = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return {**spent, "messages": len(done.messages), "reward": done.reward_info.reward}


def _response(reply: dict) -> object:
    from litellm import ModelResponse

    calls = [
        {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
        for c in reply["tool_calls"] or ()
    ]
    message = {"role": "assistant", "content": reply["content"], "tool_calls": calls or None}
    finish = "tool_calls" if calls else "stop"
    return ModelResponse(model="gpt-4.1", choices=[{"index": 0, "message": message, "finish_reason": finish}])


if __name__ == "__main__":
    main()
