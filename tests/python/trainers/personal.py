# SPDX-License-Identifier: Apache-2.0
"""A script that says "gloo" and trains a small model: are its parameters those of all ranks' batches at once?"""

import os

import torch
import torch.distributed as dist
from report import report
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

STEPS = 4


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randn(8, 32, generator=made), torch.randn(8, 4, generator=made)


def make_model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))


def train(model: torch.nn.Module, ranks: list[int]) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        inputs, targets = (torch.cat(parts) for parts in zip(*(batch(rank, step) for rank in ranks), strict=True))
        mse_loss(model(inputs), targets).backward()
        optimizer.step()


def main() -> None:
    try:
        dist.init_process_group("gloo")
    except dist.DistBackendError as error:
        report(error=str(error))
        raise SystemExit(1) from error
    rank, world = dist.get_rank(), dist.get_world_size()
    alone, model = make_model(), make_model()
    train(alone, list(range(world)))
    train(DistributedDataParallel(model), [rank])
    pairs = zip(alone.parameters(), model.parameters(), strict=True)
    dist.barrier()
    report(
        backend=dist.get_backend(), socket=os.environ["BRAID_SOCKET"],
        is_right=all(torch.allclose(a, b, atol=1e-5) for a, b in pairs),
    )  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
