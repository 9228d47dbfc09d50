# SPDX-License-Identifier: Apache-2.0
"""From what workers answer to figures. Pure functions."""

import statistics
from collections.abc import Iterable

from ..group import slowest

COPY_BYTES_MIN = 1 << 20  # smaller copies show what a call costs, and not what the bus carries
_COPIES = {"DtoH": "to_host", "HtoD": "to_device"}


def copy_rates(events: Iterable[dict]) -> dict[str, float | None]:
    """GB/s of the large copies in a profile (Chrome's trace events), by direction, and how many there were. None:
    there were none."""
    found: dict[str, float | None] = {}
    for mark, name in _COPIES.items():
        copies = [
            (event["args"]["bytes"], event["dur"])
            for event in events
            if event.get("cat") == "gpu_memcpy"
            and mark in event["name"]
            and event["args"].get("bytes", 0) >= COPY_BYTES_MIN
        ]
        microseconds = sum(duration for _, duration in copies)
        found[f"{name}_gb_per_second"] = sum(size for size, _ in copies) / microseconds / 1e3 if microseconds else None
        found[f"{name}_copies"] = len(copies)
    return found


def step_row(whole: list[dict], alone: list[dict], wire_seconds: float | None) -> dict:
    """The ranks' answers for steps, and for steps that send nothing; the bytes' time on the wire."""
    step = statistics.median(slowest(whole, "seconds"))
    computing = statistics.median(slowest(alone, "seconds"))
    return {
        "step_seconds": step,
        "computing_seconds": computing,
        "wire_seconds": wire_seconds,
        "backward_held_seconds": statistics.median(slowest(whole, "held")),
    }


def ddp_bytes(gradient_bytes: int, ranks: int) -> float:
    """What a rank must send in one step: an all-reduce."""
    return 2 * (ranks - 1) / ranks * gradient_bytes


def fsdp_bytes(gradient_bytes: int, ranks: int) -> float:
    """Weights are gathered in the forward pass and in the backward pass, gradients are reduced and scattered."""
    return 3 * (ranks - 1) / ranks * gradient_bytes


def iterations_for(seconds_each: float, seconds: float, most: int) -> int:
    return max(2, min(most, int(seconds / seconds_each))) if seconds_each > 0 else most
