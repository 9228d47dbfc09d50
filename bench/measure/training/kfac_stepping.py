# SPDX-License-Identifier: Apache-2.0
"""Steps of the modes of K-FAC on one rank, in turns."""

import hashlib
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from braid.torch.kfac import KFAC

from .emulated import Clock, Waiting
from .kfac_figures import ALONE, MODES, PHASES

_LEARNING_RATE, _DAMPING = 0.01, 0.03


class _Training:
    def __init__(self, task: dict, mode: str, alone: Any):
        """`alone` is a group of this rank only."""
        torch.manual_seed(1)
        self.makes_inverses = True
        self._model = _make_model(task)
        options: dict[str, Any] = {"process_group": alone}
        if mode != ALONE:
            self._model = DistributedDataParallel(self._model, gradient_as_bucket_view=True)
            options = {"mode": mode}
        self._kfac = KFAC(
            self._model, damping=_DAMPING, lr=_LEARNING_RATE, compute_method=task["method"],
            inv_update_steps=self._steps_between_inverses, **options,
        )  # fmt: skip
        self._optimizer = torch.optim.SGD(self._model.parameters(), _LEARNING_RATE)
        torch.manual_seed(1 + dist.get_rank())
        self._rows = torch.randn(task["batch_size"], task["width"])

    def _steps_between_inverses(self, step: int) -> int:
        return 1 if self.makes_inverses else step + 1

    def take(self, steps: int) -> list[float]:
        """Seconds of each."""
        dist.barrier()
        return [self._take() for _ in range(steps)]

    def _take(self) -> float:
        begin = time.perf_counter()
        self._optimizer.zero_grad()
        (self._model(self._rows) - self._rows).square().mean().backward()
        self._kfac.step()
        self._optimizer.step()
        return time.perf_counter() - begin

    def digest(self) -> str:
        """A digest of all bits of the parameters."""
        sha = hashlib.sha256()
        for parameter in self._model.parameters():
            sha.update(parameter.detach().numpy().tobytes())
        return sha.hexdigest()


def _make_model(task: dict) -> nn.Module:
    """Each layer waits for its share of a pass."""
    width, layers = task["width"], task["layers"]
    clock, share = Clock(), 1e-3 * task["waiting_ms"] / layers
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.Tanh()]
        if share > 0:
            parts.append(Waiting(clock, share))
    return nn.Sequential(*parts)


def run(task: dict) -> dict:
    """By phase and mode, the seconds of all steps that count."""
    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    trainings = {mode: _Training(task, mode, alone) for mode in (*MODES, ALONE)}
    measured: dict[str, Any] = {}
    for phase in PHASES:
        measured[phase] = {mode: [] for mode in trainings}
        for training in trainings.values():
            training.makes_inverses = phase == "inverses"
            training.take(task["settling_steps"])
        for _ in range(task["rounds"]):
            for mode, training in trainings.items():
                measured[phase][mode] += training.take(task["steps"])
    digests = {mode: training.digest() for mode, training in trainings.items()}
    return {**measured, "digests": digests}
