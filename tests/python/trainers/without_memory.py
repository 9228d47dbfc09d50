# SPDX-License-Identifier: Apache-2.0
"""Collectives on tensors that have no memory, and one on tensors that have."""

from __future__ import annotations

import torch
import torch.distributed as dist
from report import report, told


def main() -> None:
    dist.init_process_group("gloo")
    size = dist.get_world_size()
    meta, real = torch.ones(size, device="meta"), torch.ones(size)
    some = [torch.empty_like(meta), *(torch.empty(size) for _ in range(size - 1))]
    texts = [
        told(lambda: dist.all_reduce(meta)),
        told(lambda: dist.broadcast(meta, 0)),
        told(lambda: dist.all_gather(some, real)),
        told(lambda: dist.reduce_scatter_tensor(torch.empty(1), meta)),
        told(lambda: dist.all_to_all_single(torch.empty(size), meta)),
    ]
    dist.all_reduce(real)
    report(texts=texts, total=real[0].item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
