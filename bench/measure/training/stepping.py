# SPDX-License-Identifier: Apache-2.0
"""The steps of one system on one rank, one after the other, and what its node has sent meanwhile."""

import json
import math
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn

from .. import cpu
from . import data, emulated
from .optimizers import Trained
from .systems import System, parse

_LEARNING_RATE, _MOMENTUM = 1e-3, 0.9
# A model of as many parameters as resnet50, with real layers.
_REAL = ("digits", 2048, 7)
_REAL_BATCH = 16
_PARTS = ("forward", "backward", "step()")
_METRICS_PORT = 9431
_TIMEOUT_S = 60
_TRACED_STEPS_MAX = 64


def run(task: dict) -> dict:
    """`compute_seconds` of None: a real model computes. With `braidctl`, a program, rank 0 also tells `computing`: of
    each step the name, begin and end of its parts; and what the daemon has noted of it: see read_trace()."""
    system = parse(task["system"])
    model, loss_of = _make(task)
    steps = _Steps(Trained(model, system, 0, _LEARNING_RATE, _MOMENTUM), loss_of)
    counted, settling = task["steps"], _settling(task["settling_steps"], system)
    address, daemon = task["daemons"][dist.get_rank()]
    steps.take(settling)
    steps.trained.settle()
    dist.barrier()
    sent = _wire_bytes_sent(address)
    # The barrier has brought the ranks together: at first they would be in each other's way on the processors that
    # the emulated nodes share.
    steps.take(settling)
    begun = _clocks(daemon)
    taken = steps.take(counted)
    seconds, own_cpu, daemon_cpu = (b - a for a, b in zip(begun, _clocks(daemon), strict=True))
    steps.trained.wait()
    dist.barrier()
    sent = _wire_bytes_sent(address) - sent
    seen = {}
    if task["braidctl"] and dist.get_rank() == 0:
        seen = {"computing": taken, **_seen_by_daemon(task["braidctl"], 2 * settling + counted)}
    dist.barrier()
    passes = sum(step[1][2] - step[0][1] for step in taken) / 1e9
    return {
        "step_seconds": seconds / counted,
        "pass_seconds": passes / counted,
        "trainer_cpu_seconds": own_cpu / counted,
        "daemon_cpu_seconds": daemon_cpu / counted,
        "bytes_per_step": sent / (settling + counted),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        **seen,
    }


def _clocks(daemon: int) -> tuple[float, float, float]:
    return time.perf_counter(), time.process_time(), cpu.seconds_of([daemon])


class _Steps:
    def __init__(self, trained: Trained, loss_of: Callable[[nn.Module], torch.Tensor]):
        self.trained, self._loss_of = trained, loss_of

    def take(self, count: int) -> list[list[list]]:
        return [self._take() for _ in range(count)]

    def _take(self) -> list[list]:
        """Name, begin and end of each part of a step: CLOCK_MONOTONIC in nanoseconds, as daemons note it."""
        self.trained.optimizer.zero_grad()
        moments = [time.monotonic_ns()]
        loss = self._loss_of(self.trained.model)
        moments.append(time.monotonic_ns())
        loss.backward()
        moments.append(time.monotonic_ns())
        self.trained.optimizer.step()
        moments.append(time.monotonic_ns())
        return [[name, *moments[i : i + 2]] for i, name in enumerate(_PARTS)]


def _make(task: dict) -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    """A model, and what makes a loss of it."""
    if task["compute_seconds"] is not None:
        with open(task["trace"], encoding="utf-8") as file:
            trace = json.load(file)
        model = emulated.make_model(
            trace["numel"], trace["tb"], trace["forward_seconds"], task["compute_seconds"]
        )
        return model, emulated.loss_of
    torch.manual_seed(1)
    images, labels = torch.randn(_REAL_BATCH, 64), torch.arange(_REAL_BATCH) % 10
    return data.make_model(*_REAL), lambda model: nn.functional.cross_entropy(model(images), labels)


def _settling(steps: int, system: System) -> int:
    """In whole cycles. None of systems that synchronize seldom: they have prepared that when they were made."""
    if system.sync_every > 1:
        return 0
    return math.ceil(steps / system.cycle_steps) * system.cycle_steps


def _wire_bytes_sent(address: str) -> int:
    """Payload of chunks on all flows since the daemon began. scripts/cluster has /metrics at the node's address."""
    url = f"http://{address}:{_METRICS_PORT}/metrics"
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:
        text = response.read().decode()
    return int(float(re.search(r'^braid_wire_bytes_total\{direction="sent"\} (\S+)$', text, re.MULTILINE).group(1)))


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
    return read_trace(json.loads(done.stdout))


def read_trace(document: dict) -> dict:
    """What rank 0's node has noted of its gradients: the moments in which each was handed to the daemon, and begin, end
    and bytes of the operations. `document`: of `braidctl trace`."""
    tracks = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in document["traceEvents"]
        if event["name"] == "thread_name"
    }
    (rank, node) = next(place[::-1] for place, name in tracks.items() if name == "rank 0: trainer")
    origin = document["otherData"]["begin_ns"]
    gradients, operations = [], []
    for event in document["traceEvents"]:
        if event["pid"] != node or "ts" not in event:
            continue
        begin = origin + round(1000 * event["ts"])
        if event["ph"] == "i" and event["tid"] == rank:
            gradients.append(begin)
        # Not those that wait, which are within others, nor barriers.
        elif tracks[node, event["tid"]].startswith("operations") and event["args"].get("bytes"):
            operations.append([begin, begin + round(1000 * event["dur"]), event["args"]["bytes"]])
    return {"gradients": gradients, "operations": operations}
