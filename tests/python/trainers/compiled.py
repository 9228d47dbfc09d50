# SPDX-License-Identifier: Apache-2.0
"""torch.compile around DDP, which PyTorch recommends, and inside it; beside plain DDP over gloo."""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.distributed as dist
from ddp_models import small
from report import report
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

STEPS = 5
BACKENDS = sys.argv[1:]


def train(model: torch.nn.Module) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        images = torch.randn(8, 12, generator=data)
        labels = torch.randint(0, 3, (8,), generator=data)
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def seeded() -> torch.nn.Module:
    torch.manual_seed(3)
    return small()


def reduced_in_a_compiled_function(backend: str) -> None:
    @torch.compile(backend=backend)
    def doubled_sum(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor * 2
        dist.all_reduce(tensor)
        return tensor + 1

    size = dist.get_world_size()
    assert doubled_sum(torch.ones(3)).tolist() == [2.0 * size + 1] * 3


def planned(model: DistributedDataParallel) -> int:
    attached: Any = sys.modules["braid.torch.ddp.changed"]._attached.get(model)
    return attached._gradients.parameter_count if attached is not None else 0


def main() -> None:
    dist.init_process_group("gloo")
    over_gloo = dist.new_group.__wrapped__(backend="gloo")  # type: ignore[attr-defined]
    expected = torch.tensor(train(DistributedDataParallel(seeded(), process_group=over_gloo)))
    done = []
    for backend in BACKENDS:
        around = DistributedDataParallel(seeded())
        inside = DistributedDataParallel(torch.compile(seeded(), backend=backend))
        for model, runs in ((around, torch.compile(around, backend=backend)), (inside, inside)):
            losses = torch.tensor(train(runs))
            assert torch.allclose(losses, expected, rtol=1e-5), (losses, expected)
            assert planned(model) == 4
        reduced_in_a_compiled_function(backend)
        torch._dynamo.reset()
        done.append(backend)
        print(backend, flush=True)
    report(done=done, backend=dist.get_backend())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
