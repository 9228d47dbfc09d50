# SPDX-License-Identifier: Apache-2.0
"""What a process group's job is called: as people call the run, with torch's word for the group behind it."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import os
import re
import sys
from collections.abc import Callable
from typing import Any

_CHARACTERS_MAX = 50
_DEFAULT = "default_pg"  # torch's description of the default group
# What the group is called that torch makes now, on this thread; "": the default group.
_label: contextvars.ContextVar[str] = contextvars.ContextVar("label", default="")
_run = ""  # what the default group's job is called


def wanted_name(label: str | None) -> str:
    """`label`: of a group that torch does not describe."""
    label = _label.get() if label is None else label
    return f"{_run or _name_of_run()}/{label}" if label else _name_of_run()


def remember(name: str, label: str | None) -> None:
    """The other groups of this run are called after its default one, with the number that it may have."""
    global _run
    if not (_label.get() if label is None else label):
        _run = name


def _name_of_run() -> str:
    """The user's name for it, the batch system's, or the script's."""
    if chosen := os.environ.get("BRAID_JOB"):
        return "".join(each if each.isprintable() else "_" for each in chosen)[:_CHARACTERS_MAX]
    name, number = os.environ.get("SLURM_JOB_NAME"), os.environ.get("SLURM_JOB_ID")
    if name and number:
        return f"{_plain(name)}-{_plain(number)}"
    folder, file = os.path.split(os.path.abspath(sys.argv[0] if sys.argv else ""))
    script = os.path.basename(folder) if file == "__main__.py" else file.removesuffix(".py")
    return _plain(script) or "python"


def _plain(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text, flags=re.ASCII).strip("_-")[:_CHARACTERS_MAX]


def label_of(description: str | None, ranks: list[int]) -> str:
    """As "tp0": a mesh has a group of this description for each of its rows, so the first rank says which."""
    if description == _DEFAULT or not ranks:
        return ""
    known = "" if description in (None, "undefined") else _plain(description.removeprefix("mesh_"))
    known = known or "group"
    return f"{known}{'-' if known[-1].isdigit() else ''}{ranks[0]}"


def described(helper: Callable[..., Any]) -> Callable[..., Any]:
    """torch's function that makes a group, which keeps the description from the backend."""
    signature = inspect.signature(helper)

    @functools.wraps(helper)
    def _new_process_group_helper(*args: Any, **kwargs: Any) -> Any:
        label = ""
        with contextlib.suppress(TypeError):  # Wrong arguments: the helper says so best.
            given = signature.bind(*args, **kwargs).arguments
            label = label_of(given.get("group_desc"), list(given.get("global_ranks_in_group") or []))
        token = _label.set(label)
        try:
            return helper(*args, **kwargs)
        finally:
            _label.reset(token)

    _new_process_group_helper._braid = True  # type: ignore[attr-defined]
    return _new_process_group_helper
