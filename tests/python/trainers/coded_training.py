# SPDX-License-Identifier: Apache-2.0
"""One rank of a small training whose gradients may travel encoded: `coded_training.py [PATTERN=CODEC …]`."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from report import digest, report
from torch.nn.parallel import DistributedDataParallel

import braid.torch

STEPS = 30

braid.torch.enable()
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 5))
if len(sys.argv) > 1:
    braid.torch.set_codec(model, dict(one.split("=", 1) for one in sys.argv[1:]))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
target = torch.randn(20, 5)
torch.manual_seed(100 + rank)
losses = []
for _ in range(STEPS):
    inputs = torch.randn(32, 20)
    loss = torch.nn.functional.mse_loss(ddp(inputs), inputs @ target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report(losses=losses, digest=digest(model.parameters()))
dist.destroy_process_group()
