# SPDX-License-Identifier: Apache-2.0
"""Every collective of torch.distributed over braid and over gloo, in one run.

Each rank has a group of either kind; they take turns, repeat by repeat, so that noise hits both
alike. Every result is checked once. Printed is the time until the slowest rank has returned: the
median over the iterations, then over the repeats.

    scripts/cluster --nodes 4 --nic-mbit 2000 --flow-mbit 500 -- \\
        build/venv/bin/python bench/collectives.py
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

import braid.torch

ROOT = 0


class Collectives:
    """What is measured, on tensors of `nbytes` per rank: the larger one of input and result."""

    def __init__(self, nbytes: int) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        count = max(1, nbytes // 4 // self.size) * self.size
        self.whole = torch.empty(count)
        self.other = torch.empty(count)
        self.part = torch.empty(count // self.size)
        self.half = torch.empty(nbytes // 2, dtype=torch.bfloat16)

    def names(self) -> list[str]:
        return [name for name in vars(type(self)) if name[:1] != "_" and name != "names"]

    # Each fills what it sends with the rank's number plus one, says what does the work, and what
    # then holds.

    def all_reduce(self, group) -> tuple[Callable, Callable]:
        self.whole.fill_(self.rank + 1)
        return (
            lambda: dist.all_reduce(self.whole, group=group),
            lambda: bool((self.whole == self._sum()).all()),
        )

    def all_reduce_bf16(self, group) -> tuple[Callable, Callable]:
        self.half.fill_(self.rank + 1)
        return (
            lambda: dist.all_reduce(self.half, group=group),
            lambda: bool((self.half == self._sum()).all()),
        )

    def reduce_scatter(self, group) -> tuple[Callable, Callable]:
        self.whole.fill_(self.rank + 1)
        return (
            lambda: dist.reduce_scatter_tensor(self.part, self.whole, group=group),
            lambda: bool((self.part == self._sum()).all()),
        )

    def all_gather(self, group) -> tuple[Callable, Callable]:
        self.part.fill_(self.rank + 1)
        return (
            lambda: dist.all_gather_into_tensor(self.whole, self.part, group=group),
            lambda: self._holds_parts(self.whole),
        )

    def broadcast(self, group) -> tuple[Callable, Callable]:
        self.whole.fill_(self.rank + 1)
        return (
            lambda: dist.broadcast(self.whole, ROOT, group=group),
            lambda: bool((self.whole == ROOT + 1).all()),
        )

    def all_to_all(self, group) -> tuple[Callable, Callable]:
        self.other.fill_(self.rank + 1)
        return (
            lambda: dist.all_to_all_single(self.whole, self.other, group=group),
            lambda: self._holds_parts(self.whole),
        )

    def gather(self, group) -> tuple[Callable, Callable]:
        self.part.fill_(self.rank + 1)
        blocks = list(self.whole.chunk(self.size)) if self.rank == ROOT else None
        return (
            lambda: dist.gather(self.part, blocks, dst=ROOT, group=group),
            lambda: self.rank != ROOT or self._holds_parts(self.whole),
        )

    def scatter(self, group) -> tuple[Callable, Callable]:
        for rank, block in enumerate(self.other.chunk(self.size)):
            block.fill_(rank + 1)
        blocks = list(self.other.chunk(self.size)) if self.rank == ROOT else None
        return (
            lambda: dist.scatter(self.part, blocks, src=ROOT, group=group),
            lambda: bool((self.part == self.rank + 1).all()),
        )

    def _sum(self) -> float:
        return self.size * (self.size + 1) / 2

    def _holds_parts(self, tensor: torch.Tensor) -> bool:
        return all(bool((p == r + 1).all()) for r, p in enumerate(tensor.chunk(self.size)))


def measure(run: Callable, group, iterations: int) -> list[float]:
    seconds = []
    for _ in range(iterations):
        dist.barrier(group=group)
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=float, default=24e6, help="of the larger tensor (24e6)")
    parser.add_argument("--iterations", type=int, default=10, help="per repeat (10)")
    parser.add_argument("--repeats", type=int, default=3, help="of everything (3)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    braid.torch.register()
    dist.init_process_group("braid")
    groups = {"braid": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    collectives = Collectives(int(options.bytes))
    if dist.get_rank() == ROOT:
        print(f"{'collective':16} {'braid ms':>9} {'gloo ms':>9} {'braid/gloo':>10}", flush=True)
    for name in collectives.names():
        medians: dict[str, list[float]] = {system: [] for system in groups}
        for repeat in range(options.repeats):
            for system, group in groups.items():
                run, holds = getattr(collectives, name)(group)
                run()
                if repeat == 0 and not holds():
                    raise SystemExit(f"{name} over {system}: a result is wrong")
                slowest = torch.tensor(measure(run, group, options.iterations))
                dist.all_reduce(slowest, dist.ReduceOp.MAX, group=groups["gloo"])
                medians[system].append(slowest.median().item())
        braid_ms, gloo_ms = (1e3 * statistics.median(medians[system]) for system in groups)
        if dist.get_rank() == ROOT:
            print(f"{name:16} {braid_ms:9.2f} {gloo_ms:9.2f} {braid_ms / gloo_ms:10.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
