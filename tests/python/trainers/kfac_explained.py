# SPDX-License-Identifier: Apache-2.0
"""One rank of a training with K-FAC whose inversions take as long as the test says, while rank 0 asks its daemon why
its steps take so long, and for a trace.

Arguments: the mode; the seconds of an inversion on each rank; a word for which rank 0 asks again and again, or nothing:
then it asks a few times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
from report import report

import braid
import braid.torch
from braid.errors import NotFoundError
from braid.torch.group.training_group import braid_group
from braid.torch.kfac import KFAC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kfac_models import batch, differentiate, make_model  # noqa: E402

BUILD = Path(os.environ.get("BRAID_BUILD") or Path(__file__).resolve().parents[3] / "build" / "release")
TIMES, DEADLINE_S = 3, 240


def slow_down(kfac: KFAC, seconds: float) -> None:
    invert = kfac._method.invert

    def slowly(*arguments: torch.Tensor | float) -> None:
        time.sleep(seconds)
        invert(*arguments)

    kfac._method.invert = slowly


def placed_work(document: dict) -> list[list]:
    """A trace's spans of placed work: track, name, seconds, owner, whether it is a wait."""
    events = document["traceEvents"]
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [(tracks[e["pid"], e["tid"]], e) for e in events if e["ph"] == "X" and "waits" in e["args"]]
    return [
        [track.partition(" (")[0], e["name"], e["dur"] * 1e-6, e["args"]["owner"], e["args"]["waits"]]
        for track, e in spans
    ]  # fmt: skip


class Asker:
    """Asks on a thread of its own."""

    def __init__(self, job: str, word: str) -> None:
        self.job, self.word = job, word
        self.texts: list[str] = []
        self.spans: list[list] = []
        self.is_over = False
        threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self) -> None:
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end and not self._has_heard():
            try:
                self.texts.append(braid.explain(self.job, timeout=60))
            except NotFoundError:
                time.sleep(0.2)  # Too few steps have ended.
        command = [BUILD / "bin" / "braidctl", "--socket", os.environ["BRAID_SOCKET"], "trace"]
        done = subprocess.run([*command, "--job", self.job], capture_output=True, text=True, check=True)
        self.spans = placed_work(json.loads(done.stdout))
        self.is_over = True

    def _has_heard(self) -> bool:
        return any(self.word in text for text in self.texts) if self.word else len(self.texts) == TIMES


def main() -> None:
    mode, seconds, word = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
    braid.torch.enable()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = make_model()
    kfac = KFAC(model, mode, damping=0.01)
    slow_down(kfac, seconds[rank])
    asker = Asker(braid_group(None, "the test").engine.job.name, word) if rank == 0 else None
    is_over, step = torch.zeros(1), 0
    while not is_over:
        model.zero_grad()
        differentiate(model, batch(step, rank, size))
        kfac.step()
        is_over.fill_(asker is not None and asker.is_over)
        dist.all_reduce(is_over)
        step += 1
    report(**({} if asker is None else {"texts": asker.texts, "spans": asker.spans}))


main()
