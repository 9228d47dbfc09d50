# SPDX-License-Identifier: Apache-2.0
"""Every collective on the device's tensors: exact, also in stream order, without a synchronization in between."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from .device import Device

_DTYPES = ("float32", "bfloat16", "float16", "float64", "int64", "int32", "uint8")
# Not all of the ranks' parts begin at a multiple of a page, or of a vector.
_COUNTS, _LARGE_COUNT = (1, 1000, 40_000), 1_000_003
_NAMED_MAX = 10
_PERIOD = 7  # element i of rank r is i mod 7 + r + 1: sums are exact in every dtype


class _Check:
    """One dtype and one count; each method is a collective, and says whether its result is right."""

    def __init__(self, device: Device, dtype: str, count: int):
        self._device, self._count = device.torch, count
        self._dtype = getattr(torch, dtype)
        self._rank, self._size = dist.get_rank(), dist.get_world_size()
        self._all = [self._given(rank) for rank in range(self._size)]
        self._sum = torch.stack([one.double() for one in self._all]).sum(0).to(self._dtype)

    def _given(self, rank: int) -> torch.Tensor:
        return (torch.arange(self._count, device=self._device) % _PERIOD + rank + 1).to(self._dtype)

    @property
    def _own(self) -> torch.Tensor:
        return self._given(self._rank)

    def _empty(self, blocks: int = 1) -> torch.Tensor:
        return torch.full((blocks * self._count,), 99, device=self._device).to(self._dtype)

    def all_reduce(self) -> bool:
        own = self._own
        dist.all_reduce(own)
        return torch.equal(own, self._sum)

    def reduce(self) -> bool:
        own = self._own
        dist.reduce(own, 0)
        return self._rank != 0 or torch.equal(own, self._sum)

    def reduce_scatter(self) -> bool:
        part = self._empty()
        dist.reduce_scatter_tensor(part, self._own.repeat(self._size))
        return torch.equal(part, self._sum)

    def all_gather(self) -> bool:
        whole = self._empty(self._size)
        dist.all_gather_into_tensor(whole, self._own)
        return torch.equal(whole, torch.cat(self._all))

    def broadcast(self) -> bool:
        own = self._own
        dist.broadcast(own, self._size - 1)
        return torch.equal(own, self._all[-1])

    def all_to_all(self) -> bool:
        whole = self._empty(self._size)
        dist.all_to_all_single(whole, self._own.repeat(self._size))
        return torch.equal(whole, torch.cat(self._all))

    def gather(self) -> bool:
        blocks = [self._empty() for _ in range(self._size)] if self._rank == 0 else None
        dist.gather(self._own, blocks, dst=0)
        return blocks is None or torch.equal(torch.cat(blocks), torch.cat(self._all))

    def scatter(self) -> bool:
        part = self._empty()
        dist.scatter(part, self._all if self._rank == 0 else None, src=0)
        return torch.equal(part, self._own)


_COLLECTIVES = ("all_reduce", "reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "gather", "scatter")


def _keeps_stream_order(device: Device, on_other_stream: bool, asynchronous: bool) -> bool:
    """The input is still being computed when the collective is called, and its result is used at once."""
    size = 4096 if device.is_gpu else 64
    matrix = torch.randn(size, size, device=device.torch)
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def carry() -> torch.Tensor:
        slow = matrix
        for _ in range(8):
            slow = (slow @ matrix) * 1e-2
        values = torch.zeros(100_000, device=device.torch) + slow.sum() * 0 + rank + 1
        work = dist.all_reduce(values, async_op=asynchronous)
        if work is not None:
            work.wait()
        return values * 2

    if on_other_stream:
        with device.other_stream():
            doubled = carry()
            device.wait_for_stream()
    else:
        doubled = carry()
        device.wait_for_stream()
    return torch.equal(doubled, torch.full_like(doubled, ranks * (ranks + 1)))


def check(device: Device) -> dict:
    """How many were done, and the names of those that were wrong or refused."""
    wrong, refused, done = [], [], 0

    def attempt(name: str, run: Callable[[], bool]) -> None:
        nonlocal done
        done += 1
        try:
            if not run():
                wrong.append(name)
        except (RuntimeError, ValueError, TypeError) as error:  # of all ranks alike: a dtype or a collective
            refused.append(f"{name}: {str(error)[:100]}")

    for dtype in _DTYPES:
        for count in (*_COUNTS, *([_LARGE_COUNT] if dtype == "float32" else [])):
            one = _Check(device, dtype, count)
            for name in _COLLECTIVES:
                attempt(f"{name} of {count} {dtype}", getattr(one, name))
    for turn in range(8):
        other, asynchronous = bool(turn & 1), bool(turn & 2)
        attempt(
            f"stream order {turn}", lambda o=other, a=asynchronous: _keeps_stream_order(device, o, a)
        )
    return {
        "done": done,
        "wrong": len(wrong),
        "refused": len(refused),
        "named": [*wrong, *refused][:_NAMED_MAX],
    }
