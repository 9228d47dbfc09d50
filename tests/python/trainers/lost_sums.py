# SPDX-License-Identifier: Apache-2.0
"""Rank 1 is killed while rank 0's stream waits for a sum of both: rank 0 reports what its results are, and what its
next call says. The GPU is the fake driver's."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fake_driver import FakeDriverCuda  # noqa: E402
from report import report  # noqa: E402

import braid.torch  # noqa: E402
from braid.torch.operations import devices  # noqa: E402


class Gpu(FakeDriverCuda):
    """Streams alone wait, as on a real one, whose memory no CPU reads."""

    def let_wait(self, job: Any, ticket: int, stream: int) -> None:
        job.stream_wait(ticket, stream)

    def until_idle(self) -> None:
        self.settle(SimpleNamespace(name="of this script"), 0)


def main() -> None:
    braid.torch.register()
    dist.init_process_group("braid")
    cuda = devices.cuda = Gpu()
    good, lost = cuda.put(torch.ones(1000)), cuda.put(torch.ones(1000))
    integers = cuda.put(torch.ones(1000, dtype=torch.int64))
    dist.all_reduce(good)
    cuda.until_idle()
    submitted = Path(os.environ["BRAID_CLUSTER_DIR"]) / "submitted"
    if dist.get_rank() == 1:
        end = time.monotonic() + 60
        while not submitted.exists() and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(lost)
    dist.all_reduce(integers)
    submitted.touch()
    cuda.until_idle()
    results = {"good": good.unique().tolist(), "lost": bool(lost.isnan().all()), "integers": integers.unique().tolist()}
    try:
        dist.all_reduce(good)
    except dist.DistBackendError as error:
        results["error"] = str(error)
    report(**results)


if __name__ == "__main__":
    main()
