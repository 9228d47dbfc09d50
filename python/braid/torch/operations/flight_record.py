# SPDX-License-Identifier: Apache-2.0
"""What this process's collectives did last, as torch's `torchfrtrace` reads it: a flight record.

The latest 2000 (TORCH_FR_BUFFER_SIZE) are kept, of all groups: those that the script starts, and the
buckets of DDP's gradients. Where TORCH_FR_DUMP_TEMP_FILE has a prefix, the first operation that
fails has the record written to <prefix><rank>; `dump_flight_record()` does it at any time. The
format is version 2.10 of that of c10d's FlightRecorder (torch/csrc/distributed/c10d), with one key more,
"braid": which ranks the daemons have named as missing from which operations.

What callbacks of futures start is not in it: it comes in another order on other ranks.
"""

from __future__ import annotations

import itertools
import logging
import os
import pickle
import re
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

_log = logging.getLogger("braid")
_VERSION = "2.10"
_ENTRIES_DEFAULT, _ENTRIES_MAX = 2000, 1_000_000
_FRAMES_MAX = 12
_OURS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
# The older names are those that torch still takes.
_SIZE_VARIABLES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
_PREFIX_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")

# How a daemon names them (src/coordinator/investigation.cpp).
_NOT_SUBMITTED = re.compile(r"not submitted by rank (\d+(?:, \d+)*) on node '([^']*)'")

# Shape and element type of each tensor.
Tensors = list[tuple[torch.Size, torch.dtype]]
Frames = list[tuple[CodeType, int]]


class Entry:
    """One operation. The thread that starts it makes it; the one that sees it end calls end()."""

    __slots__ = ("begun_ns", "ended_ns", "error", "frames", "group", "inputs", "name", "number",
                 "outputs", "sequence")  # fmt: skip

    def __init__(
        self, group: GroupRecord, name: str, inputs: Tensors, outputs: Tensors, frames: Frames
    ) -> None:
        self.group = group
        self.number = next(_numbers)
        self.sequence = next(group.sequence)
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.frames = frames
        self.begun_ns = time.time_ns()
        self.ended_ns: int | None = None
        self.error = ""

    def end(self, error: Exception | None = None) -> None:
        self.ended_ns = time.time_ns()
        if error is not None:
            self.error = str(error)
            _dump_of_failure()


class GroupRecord:
    """The record of one process group."""

    def __init__(self, group: dist.ProcessGroup, names: Sequence[str], size: int) -> None:
        """`names`: the group's name and description, which torch sets later."""
        self._group = weakref.ref(group)
        self.names = names
        self._size = size
        self.sequence = itertools.count(1)
        # Ends the entries of operations that have ended without anybody's seeing it; weakly.
        self.look: Callable[[], Callable[[], None] | None] = lambda: None

    def is_there(self) -> bool:
        return self._group() is not None

    def config(self) -> dict[str, str]:
        """As torch has it of its own groups: ranks are those of the world."""
        group, ranks = self._group(), list(range(self._size))
        if group in distributed_c10d._world.pg_map:
            ranks = distributed_c10d.get_process_group_ranks(group)
        return {"name": self.names[0], "desc": self.names[1], "ranks": str(ranks)}

    def add(
        self, name: str, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
    ) -> Entry | None:
        """An operation is about to be submitted. None: nothing is recorded."""
        if not _entries.maxlen:
            return None
        # Blocks of an all-to-all differ from rank to rank; what all give is what all get.
        described = _joined if name == "all_to_all" else _tensors_of
        given = described(inputs)
        got = given if outputs is inputs else described(outputs)
        entry = Entry(self, name, given, got, _frames())
        _entries.append(entry)
        return entry


def dump_flight_record(path: str | None = None) -> str:
    """Writes the record, and returns where.

    Without a path it goes to <prefix><rank of the world>, with the prefix of
    TORCH_FR_DUMP_TEMP_FILE. All ranks' files in one folder are what `torchfrtrace FOLDER` reads.
    Groups that were destroyed are left out.
    """
    if path is None:
        prefix = _prefix()
        if not prefix:
            raise ValueError(f"give a path, or set {_PREFIX_VARIABLES[0]} to a prefix")
        path = f"{prefix}{_rank_of_world()}"
    entries = [entry for entry in list(_entries) if entry.group.is_there()]
    for group in {entry.group for entry in entries}:
        if (look := group.look()) is not None:
            look()
    record = {
        "version": _VERSION,
        "pg_config": {entry.group.names[0]: entry.group.config() for entry in entries},
        "entries": [_described(entry) for entry in entries],
        # torch's own tools look at nothing else than the keys above.
        "braid": {"missing": _missing(entries)},
    }
    # Beside its place, so that nobody reads half of it.
    unfinished = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
    try:
        with open(unfinished, "xb") as file:
            pickle.dump(record, file)
        os.replace(unfinished, path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    return path


def _size() -> int:
    for variable in _SIZE_VARIABLES:
        text = os.environ.get(variable, "")
        if text.isascii() and text.isdecimal() and int(text) <= _ENTRIES_MAX:
            return int(text)
        if text:
            _log.warning("%s is a whole number up to %d, not '%s': %d", variable, _ENTRIES_MAX,
                         text, _ENTRIES_DEFAULT)  # fmt: skip
    return _ENTRIES_DEFAULT


_entries: deque[Entry] = deque(maxlen=_size())
_numbers = itertools.count()
_failure_lock = threading.Lock()
_failure_is_dumped = False


def _dump_of_failure() -> None:
    """The first one's: what follows from it tells nothing new."""
    global _failure_is_dumped
    if not _prefix():
        return
    with _failure_lock:
        if _failure_is_dumped:
            return
        _failure_is_dumped = True
    try:
        _log.warning("an operation failed: the flight record is in %s", dump_flight_record())
    except Exception as error:
        _log.warning("the flight record could not be written: %s", error)


def _prefix() -> str:
    return next((os.environ[name] for name in _PREFIX_VARIABLES if os.environ.get(name)), "")


def _rank_of_world() -> int:
    if dist.is_initialized():
        return dist.get_rank()
    return int(os.environ.get("RANK", "0"))


def _missing(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Which ranks, by node, had not submitted the operations that failed for it."""
    missing = []
    for entry in entries:
        named = _NOT_SUBMITTED.findall(entry.error)
        if not named:
            continue
        nodes = {node: [int(rank) for rank in ranks.split(", ")] for ranks, node in named}
        # Ranks are those of the group's job, as in the error.
        missing.append({
            "record_id": entry.number,
            "process_group": (entry.group.names[0], entry.group.names[1]),
            "collective_seq_id": entry.sequence,
            "profiling_name": f"braid:{entry.name}",
            "ranks": sorted(rank for ranks in nodes.values() for rank in ranks),
            "nodes": nodes,
        })  # fmt: skip
    return missing


def _described(entry: Entry) -> dict[str, Any]:
    has_ended = entry.ended_ns is not None and not entry.error
    return {
        "record_id": entry.number,
        "pg_id": 0,
        "process_group": (entry.group.names[0], entry.group.names[1]),
        "collective_seq_id": entry.sequence,
        "p2p_seq_id": 0,
        "op_id": entry.number,
        "profiling_name": f"braid:{entry.name}",
        "time_created_ns": entry.begun_ns,
        "input_sizes": [list(shape) for shape, _ in entry.inputs],
        "output_sizes": [list(shape) for shape, _ in entry.outputs],
        "input_dtypes": [_name_of(dtype) for _, dtype in entry.inputs],
        "output_dtypes": [_name_of(dtype) for _, dtype in entry.outputs],
        "state": "completed" if has_ended else "scheduled",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": entry.ended_ns if has_ended else None,
        "duration_ms": (entry.ended_ns - entry.begun_ns) / 1e6 if has_ended else None,
        "timeout_ms": 0,
        "is_p2p": False,
        "retired": entry.ended_ns is not None,
        "error": entry.error,
        "frames": [
            {"name": code.co_name, "filename": code.co_filename, "line": _line_of(code, place)}
            for code, place in entry.frames
            if not code.co_filename.startswith(_OURS)
        ],
    }


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _tensors_of(tensors: Sequence[torch.Tensor]) -> Tensors:
    return [(tensor.shape, tensor.dtype) for tensor in tensors]


def _joined(tensors: Sequence[torch.Tensor]) -> Tensors:
    elements = sum(tensor.numel() for tensor in tensors)
    return [(torch.Size([elements]), tensors[0].dtype)] if tensors else []


def _line_of(code: CodeType, place: int) -> int:
    lines = (line for start, end, line in code.co_lines() if start <= place < end and line)
    return next(lines, code.co_firstlineno)


def _frames() -> Frames:
    """Innermost first: code, and the place in it."""
    frames: Frames = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and len(frames) < _FRAMES_MAX:
        frames.append((frame.f_code, frame.f_lasti))  # Lines are looked up when they are wanted.
        frame = frame.f_back
    return frames
