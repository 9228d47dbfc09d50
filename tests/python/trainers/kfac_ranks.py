# SPDX-License-Identifier: Apache-2.0
"""One rank of trainings with K-FAC, with DistributedDataParallel and without, each next to one rank on all rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report
from torch.nn.parallel import DistributedDataParallel

import braid.torch
from braid.torch.kfac import KFAC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kfac_models import batch, differentiate, make_model  # noqa: E402

STEPS = 12
OPTIONS: dict[str, Any] = {"damping": 0.01, "inv_update_steps": 2, "lr": 0.05}
MODES = ("spd", "mpd", "d", "dp")


def trained(model: Any, kfac: Any, rank: int, ranks: int) -> list[torch.Tensor]:
    optimizer = torch.optim.SGD(model.parameters(), lr=OPTIONS["lr"], momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        differentiate(model, batch(step, rank, ranks))
        kfac.step()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def far(mine: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    return max((a - b).abs().max().item() for a, b in zip(mine, right))


def main() -> None:
    braid.torch.enable()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    alone = [dist.new_group([each]) for each in range(size)][rank]

    def by_one(**options: Any) -> list[torch.Tensor]:
        model = make_model()
        return trained(model, KFAC(model, process_group=alone, **{**OPTIONS, **options}), 0, 1)

    ways = {}
    for method in ("eigen", "inverse"):
        right = by_one(compute_method=method)
        for mode in MODES:
            model = make_model()
            kfac = KFAC(model, mode, compute_method=method, **OPTIONS)
            mine = trained(model, kfac, rank, size)
            ways[f"{mode} {method}"] = {"digest": digest(mine), "far": far(mine, right)}
            ddp = DistributedDataParallel(make_model(), gradient_as_bucket_view=True)
            kfac = KFAC(ddp, mode, compute_method=method, **OPTIONS)
            mine = trained(ddp, kfac, rank, size)
            ways[f"ddp {mode} {method}"] = {"digest": digest(mine), "far": far(mine, right)}
    ddp = DistributedDataParallel(make_model())
    kfac = KFAC(ddp, factor_dtype=torch.bfloat16, **OPTIONS)
    mine = trained(ddp, kfac, rank, size)
    ways["ddp bf16"] = {"digest": digest(mine), "far": far(mine, by_one())}
    start = [parameter.detach() for parameter in make_model().parameters()]
    report(ways=ways, moved=far(by_one(), start), owners=kfac.placement.owners)


main()
