# SPDX-License-Identifier: Apache-2.0
"""Ranks of which some come through gloo: `half_enabled.py FOLDER GLOO LATE`, two lists of ranks."""

from __future__ import annotations

import os
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from report import report

import braid.torch  # noqa: F401


def end_when_told(folder: Path, tellers: int) -> None:
    """A rank of gloo waits until its time is over, as ranks of gloo do."""
    while len(list(folder.iterdir())) < tellers:
        time.sleep(0.05)
    os._exit(0)


def main() -> None:
    folder, (gloo, late) = Path(sys.argv[1]), (ranks.split(",") for ranks in sys.argv[2:])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    comes_by_gloo = str(rank) in gloo
    if comes_by_gloo:
        tellers = size - len(gloo)
        threading.Thread(target=end_when_told, args=(folder, tellers), daemon=True).start()
    if str(rank) in late:
        time.sleep(4)
    try:
        dist.init_process_group("gloo" if comes_by_gloo else "braid", timeout=timedelta(minutes=30))
    except dist.DistBackendError as error:
        report(text=str(error))
        (folder / str(rank)).touch()
        end_when_told(folder, size - len(gloo))  # Rank 0 has the store.
    total = torch.ones(1)
    dist.all_reduce(total)
    report(total=total.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
