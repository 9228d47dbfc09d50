# SPDX-License-Identifier: Apache-2.0
"""NaNs in a collective and in gradients, which the environment asks to be refused."""

from __future__ import annotations

import torch
import torch.distributed as dist
from report import report, told
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    text = ""
    if rank == 1:
        text = told(lambda: dist.all_reduce(torch.tensor([1.0, float("nan")])))
    ones = torch.ones(2)
    dist.all_reduce(ones)
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    for _ in range(4):
        model(torch.ones(1, 4)).sum().backward()
    gradients = told(lambda: (model(torch.ones(1, 4)).sum() * float("nan")).backward())
    report(text=text, total=ones[0].item(), gradients=gradients)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
