# SPDX-License-Identifier: Apache-2.0
"""Keeps torch.compile out of this package.

While a compiled function runs, its compiler (Dynamo) looks into every Python function that starts,
also those that C++ calls: DDP's reducer, for one, which broadcasts when it rebuilds its buckets. What
it finds in a process group it can neither trace nor leave.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

from torch._C._dynamo import eval_frame

_Function = TypeVar("_Function", bound=Callable[..., Any])


def untraced(function: _Function) -> _Function:
    """As torch.compiler.disable, whose import takes a second that other scripts need not spend."""
    if _skip_code is None:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tracer = eval_frame.set_eval_frame(None)
        try:
            return function(*args, **kwargs)
        finally:
            eval_frame.set_eval_frame(tracer)

    _skip_code(call.__code__)
    # For Dynamo where it comes to a call of this in a function that it traces.
    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def _skip_with_strategy(code: CodeType) -> None:
    action = eval_frame._FrameAction
    strategy = eval_frame._FrameExecStrategy(action.SKIP, action.DEFAULT)
    eval_frame.set_code_exec_strategy(code, strategy)


def _find_skip_code() -> Callable[[CodeType], None] | None:
    """What makes Dynamo leave out one function; None in a torch that has other insides."""
    needed = ("_FrameAction", "_FrameExecStrategy", "set_code_exec_strategy", "set_eval_frame")
    return _skip_with_strategy if all(hasattr(eval_frame, name) for name in needed) else None


_skip_code = _find_skip_code()
