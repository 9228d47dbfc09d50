# SPDX-License-Identifier: Apache-2.0
"""DDP of a model, and what this node's shared memory holds meanwhile. For one node."""

import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from report import held, report
from torch.nn.parallel import DistributedDataParallel

LAYERS, WIDTH = 24, 1000  # 96 MB
DEADLINE_S = 180
MIB = 1 << 20
STEPS_TO_PLAN = 5
# What stays of each memory however idle (16 MiB, two ranks and the results), and blocks used in part.
IDLE_BYTES_MAX = 64 * MIB


def held_by_all() -> tuple[int, int]:
    """Bytes of all ranks' input arenas, and of their results, which on one node are in one memory."""
    figures = torch.tensor([held("arena"), held("result") if dist.get_rank() == 0 else 0])
    dist.all_reduce(figures)
    return int(figures[0]), int(figures[1])


def until_small(bytes_max: int, step: Callable[[], None]) -> int:
    """Steps until all memory together is no more than that, or time is up; what it is then."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        step()
        total = sum(held_by_all())
        late = torch.tensor([time.monotonic() > deadline])
        dist.broadcast(late, 0)  # All ranks decide alike.
        if total <= bytes_max or late:
            return total


def main() -> None:
    dist.init_process_group("gloo")
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    gradients = LAYERS * WIDTH * WIDTH * 4
    # As long as only small collectives run, what DDP's first broadcast took is nobody's.
    broadcast = sum(held_by_all())
    idle = until_small(IDLE_BYTES_MAX, lambda: time.sleep(0.02))

    def step() -> None:
        model(torch.ones(1, WIDTH)).sum().backward()

    for _ in range(STEPS_TO_PLAN):
        step()
    bound = (dist.get_world_size() + 2) * gradients + IDLE_BYTES_MAX
    total = until_small(bound, step)
    attached = sys.modules["braid.torch.ddp.changed"]._attached.get(model)
    report(
        gradients=gradients,
        broadcast=broadcast,
        idle=idle,
        idle_max=IDLE_BYTES_MAX,
        total=total,
        bound=bound,
        planned=attached is not None and attached._gradients is not None,
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
