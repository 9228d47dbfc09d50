# SPDX-License-Identifier: Apache-2.0
"""One rank of a part of a training: `moved.py FOLDER FIRST LAST`.

Goes on with what rank 0 of another job left in the folder after step FIRST, and leaves there what it has after LAST.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from report import digest, report

import braid.torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import global_batches  # noqa: E402


def sharded(model: Any) -> Any:
    return braid.torch.ShardedOptimizer(model.parameters(), torch.optim.AdamW, **global_batches.ADAMW)


def one_step_late(model: Any) -> Any:
    return braid.torch.DelayedOptimizer(
        model.parameters(), "od-sgd", warmup_steps=global_batches.WARMUP_STEPS, **global_batches.SGD
    )


def trained(way: str, folder: Path, first: int, last: int) -> str:
    model = global_batches.make_model()
    saved = torch.load(folder / f"{way}-{first}.pt", weights_only=True) if first else None
    if saved:
        model.load_state_dict(saved["model"])
    optimizer = sharded(model) if way == "sharded" else one_step_late(model)
    if saved:
        optimizer.load_state_dict(saved["optimizer"])
    for step in range(first, last):
        global_batches.differentiate(model, step, dist.get_rank(), dist.get_world_size())
        optimizer.step()
    if way != "sharded":
        optimizer.finish()
    state = optimizer.state_dict()
    if dist.get_rank() == 0:
        torch.save({"model": model.state_dict(), "optimizer": state}, folder / f"{way}-{last}.pt")
    return digest(model.parameters())


def main() -> None:
    folder, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    braid.torch.register()
    dist.init_process_group("braid")
    report(digests={way: trained(way, folder, first, last) for way in global_batches.REFERENCES})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
