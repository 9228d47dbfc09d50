# SPDX-License-Identifier: Apache-2.0
"""One rank of a training with K-FAC: `kfac_rank.py MODE FILE`. Rank 0 writes into the file what `braidctl trace` says
of the latest step, and when that began and ended on its clock."""

import json
import os
import pathlib
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import braid.torch
from braid.torch.kfac import KFAC

BRAIDCTL = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "bin" / "braidctl"
WIDTHS = (256, 384, 512, 448, 320, 10)
ROWS = 64
STEPS = 14  # by then inverses are placed at what they cost
PAUSE_S = 0.15  # between steps: so the daemons are told of each


def make_model() -> torch.nn.Module:
    torch.manual_seed(1)
    layers = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def main() -> None:
    mode, path = sys.argv[1:]
    braid.torch.enable()
    dist.init_process_group("gloo")
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kfac = KFAC(model, mode, damping=0.03, lr=0.01)
    torch.manual_seed(2 + dist.get_rank())
    for _ in range(STEPS):
        time.sleep(PAUSE_S)
        dist.barrier()
        begin_ns = time.monotonic_ns()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(
            model(torch.randn(ROWS, WIDTHS[0])), torch.randint(WIDTHS[-1], (ROWS,))
        ).backward()
        kfac.step()
        optimizer.step()
        end_ns = time.monotonic_ns()
    dist.barrier()
    if dist.get_rank() == 0:
        command = [BRAIDCTL, "--socket", os.environ["BRAID_SOCKET"], "trace", "--steps", "3"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        step = {"begin_ns": begin_ns, "end_ns": end_ns, "trace": json.loads(done.stdout)}
        pathlib.Path(path).write_text(json.dumps(step), encoding="utf-8")
    dist.barrier()


main()
