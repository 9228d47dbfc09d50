# SPDX-License-Identifier: Apache-2.0
"""The steps of one system on one rank, one after the other, and what its node has sent meanwhile."""

import json
import math
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from training_lib import data

from . import emulated
from .counters import cpu_seconds_of, machine_cpu_seconds, wire_bytes_sent
from .optimizers import Trained
from .systems import System, parse

LEARNING_RATE, MOMENTUM = 1e-3, 0.9
# A model of as many parameters as resnet50, with real layers.
_REAL = ("digits", 2048, 7)
_REAL_BATCH = 16


def run(task: dict) -> dict:
    """`compute_seconds` of None: a real model computes."""
    system = parse(task["system"])
    model, loss_of = make(task)
    trained = Trained(model, system, 0, LEARNING_RATE, MOMENTUM)
    one = _Steps(trained, loss_of)
    counted = task["steps"]
    address, daemon = task["daemons"][dist.get_rank()]
    settling = _settling(task["settling_steps"], system)
    one.take(settling)
    trained.settle()
    dist.barrier()
    sent = wire_bytes_sent(address)
    # The barrier has brought the ranks together: at first they would be in each other's way on the processors that
    # the emulated nodes share.
    one.take(settling)
    begun = _clocks(daemon)
    waited = one.take(counted)
    ended = _clocks(daemon)
    seconds, own_cpu, daemon_cpu, machine_cpu = (b - a for a, b in zip(begun, ended, strict=True))
    trained.wait()
    dist.barrier()
    sent = wire_bytes_sent(address) - sent
    return {
        "step_seconds": seconds / counted,
        "pass_seconds": waited / counted,
        "trainer_cpu_seconds": own_cpu / counted,
        "daemon_cpu_seconds": daemon_cpu / counted,
        "machine_cpu_seconds": machine_cpu / counted,
        "bytes_per_step": sent / (settling + counted),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def _clocks(daemon: int) -> tuple[float, float, float, float]:
    return time.perf_counter(), time.process_time(), cpu_seconds_of(daemon), machine_cpu_seconds()


class _Steps:
    def __init__(self, trained: Trained, loss_of: Callable[[nn.Module], torch.Tensor]):
        self._trained, self._loss_of = trained, loss_of

    def take(self, count: int) -> float:
        """Seconds of forward and backward passes."""
        seconds = 0.0
        for _ in range(count):
            self._trained.optimizer.zero_grad()
            start = time.perf_counter()
            self._loss_of(self._trained.model).backward()
            seconds += time.perf_counter() - start
            self._trained.optimizer.step()
        return seconds


def make(task: dict) -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
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
