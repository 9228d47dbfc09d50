# SPDX-License-Identifier: Apache-2.0
"""When the steps of one system compute on one rank, and when its node's daemon has which gradients in its hands.

All times are CLOCK_MONOTONIC, in nanoseconds: the trainer's own, and those that the daemons note (docs/timeline.md).
"""

import json
import subprocess
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn

from . import steps, traced
from .optimizers import Trained
from .systems import parse

FORWARD, BACKWARD, STEP = "forward", "backward", "step()"
_TRACED_STEPS_MAX = 64
_TIMEOUT_S = 60


def run(task: dict) -> dict:
    """`computing`: of each of the last steps, name, begin and end. Of rank 0 also `gradients`, moments in which one was
    handed to the daemon, and `operations`: begin, end and bytes."""
    model, loss_of = steps.make(task)
    trained = Trained(model, parse(task["system"]), 0, steps.LEARNING_RATE, steps.MOMENTUM)
    count = task["settling_steps"] + task["steps"]
    taken = [_take(trained, loss_of) for _ in range(count)]
    trained.wait()
    dist.barrier()
    seen = _seen_by_daemon(task["braidctl"], count) if dist.get_rank() == 0 else {}
    dist.barrier()
    return {"computing": taken[-task["steps"] :], **seen}


def _take(trained: Trained, loss_of: Callable[[nn.Module], torch.Tensor]) -> list[list]:
    trained.optimizer.zero_grad()
    moments = [time.monotonic_ns()]
    loss = loss_of(trained.model)
    moments.append(time.monotonic_ns())
    loss.backward()
    moments.append(time.monotonic_ns())
    trained.optimizer.step()
    moments.append(time.monotonic_ns())
    return [[name, *moments[i : i + 2]] for i, name in enumerate((FORWARD, BACKWARD, STEP))]


def _seen_by_daemon(braidctl: str, count: int) -> dict:
    """While the job is there. Steps before the first one load weights."""
    job = dist.distributed_c10d._get_default_group().engine.job.name
    wanted = min(count + 2, _TRACED_STEPS_MAX)
    done = subprocess.run(
        [braidctl, "trace", "--job", job, "--steps", str(wanted)],
        capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"braidctl trace: {done.stderr.strip()}")
    return traced.read(json.loads(done.stdout))
