# SPDX-License-Identifier: Apache-2.0
"""One rank of a training with K-FAC beside a DistributedDataParallel, until factors and gradients have live plans.

After that some more steps; then one rank does the same steps on all rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from torch.nn.parallel import DistributedDataParallel

import braid.torch
from braid.torch.group.training_group import braid_group
from braid.torch.kfac import KFAC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kfac_models import batch, differentiate, make_model  # noqa: E402

BRAIDCTL = Path(__file__).resolve().parents[3] / "build" / "release" / "bin" / "braidctl"
DEADLINE_S = 300
STEPS_BETWEEN_QUESTIONS = 20
STEPS_WITH_PLANS = 40
LR = 0.01


class Training:
    def __init__(self, model: Any, factor_every: int, group: Any = None) -> None:
        self.model = model
        self.kfac = KFAC(
            model, damping=0.01, factor_update_steps=factor_every, inv_update_steps=2 * factor_every,
            lr=LR, process_group=group,
        )  # fmt: skip
        self.optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
        self.steps = 0

    def step(self, rank: int, ranks: int) -> None:
        self.optimizer.zero_grad()
        differentiate(self.model, batch(self.steps, rank, ranks))
        self.kfac.step()
        self.optimizer.step()
        self.steps += 1

    def weights(self) -> list[torch.Tensor]:
        return [parameter.detach() for parameter in self.model.parameters()]


def sets_of(job: str) -> list[Any]:
    """What this node's daemon says of the job's sets of planned tensors."""
    command = [str(BRAIDCTL), "plan", "--job", job, "--format", "json"]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return (answer[0] if isinstance(answer, list) else answer)["sets"]


def main() -> None:
    factor_every = int(sys.argv[1])
    braid.torch.enable()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    alone = [dist.new_group([each]) for each in range(size)][rank]
    job = braid_group(None, "this test").engine.job.name
    together = Training(DistributedDataParallel(make_model()), factor_every)
    end = time.monotonic() + DEADLINE_S
    is_over = torch.zeros(1)
    while not is_over.item():
        for _ in range(STEPS_BETWEEN_QUESTIONS):
            together.step(rank, size)
        if rank == 0:
            plans = [each["plan"] for each in sets_of(job)]
            is_over[0] = (len(plans) == 2 and 0 not in plans) or time.monotonic() > end
        dist.broadcast(is_over, 0)
    for _ in range(STEPS_WITH_PLANS):
        together.step(rank, size)
    mine = together.weights()
    sets = sets_of(job)
    by_one = Training(make_model(), factor_every, alone)
    while by_one.steps < together.steps:
        by_one.step(0, 1)
    far = max((a - b).abs().max().item() for a, b in zip(mine, by_one.weights()))
    names = ("plan", "groups", "beside")
    report(digest=digest(mine), far=far, sets=[{name: each[name] for name in names} for each in sets])


main()
