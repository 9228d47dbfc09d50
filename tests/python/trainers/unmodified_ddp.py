# SPDX-License-Identifier: Apache-2.0
"""A DDP script that has never heard of braid; afterwards it looks at what was done to it."""

import sys

import torch
import torch.distributed as dist
from report import report
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
    model = DistributedDataParallel(module)
    for _ in range(4):
        model(torch.ones(2, 8)).sum().backward()
    attached = sys.modules["braid.torch.ddp.changed"]._attached.get(model)
    gradients = attached._gradients if attached is not None else None
    report(
        planned=gradients.parameter_count if gradients is not None else None,
        tensors=gradients.tensor_count if gradients is not None else None,
        buckets=len(model.reducer._get_zeros_like_grad_buckets()),
        bucket_bytes_cap=model.bucket_bytes_cap,
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
