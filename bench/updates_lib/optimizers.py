# SPDX-License-Identifier: Apache-2.0
"""A system's model and optimizer, as a script has them. On each rank, in a process group of braid."""

import dataclasses
from typing import Any

import braid.torch
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from . import systems
from .systems import System


class Trained:
    """`model` is what a script calls; `optimizer` what it steps."""

    def __init__(self, model: nn.Module, system: System, warmup_steps: int, lr: float, momentum: float):
        self.model: nn.Module = model
        self._system = system
        self._keeper: Any = None
        parameters = list(model.parameters())
        if system.is_delayed:
            self.optimizer = _delayed(parameters, system, warmup_steps, lr, momentum)
        elif system.kind == systems.SHARDED:
            self.optimizer = braid.torch.ShardedOptimizer(
                parameters, torch.optim.SGD, lr=lr, momentum=momentum, model=model, pull=system.pull,
                overlap_forward=system.overlaps_forward, overlap_backward=system.overlaps_backward,
            )  # fmt: skip
        elif system.kind == systems.ACCO:
            self.optimizer = braid.torch.Acco(
                parameters, torch.optim.SGD, lr=lr, momentum=momentum, model=model, pull=system.pull
            )
        else:
            self.optimizer = torch.optim.SGD(parameters, lr, momentum=momentum)
            self._wrap()

    def _wrap(self) -> None:
        every = self._system.sync_every
        if self._system.kind == systems.SYNC:
            self.model = DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        elif self._system.kind == systems.DILOCO:
            self._keeper = braid.torch.DiLoCo(self.model, self.optimizer, every)
        else:
            self._keeper = braid.torch.PostLocalSGD(self.optimizer, every)

    def settle(self) -> None:
        """Makes the parameters what a script evaluates: the same on all ranks. diloco and local-sgd: at the end of a
        cycle only, where they are."""
        if self._system.is_delayed or self._system.kind == systems.ACCO:
            self.optimizer.finish()
        elif self._system.kind == systems.SHARDED:
            self.optimizer.synchronize()

    def wait(self) -> None:
        """Until nothing is on its way between nodes any more; parameters stay as they are."""
        if self._system.is_delayed:
            self.optimizer.global_state.wait()
        elif self._system.kind in (systems.SHARDED, systems.ACCO):
            self.optimizer.synchronize()


def _delayed(
    parameters: list[nn.Parameter], system: System, warmup_steps: int, lr: float, momentum: float
) -> torch.optim.Optimizer:
    options = dataclasses.asdict(system.delay)
    if options["warmup_steps"] is None:
        options["warmup_steps"] = warmup_steps
    if system.kind != "ssd-sgd":
        del options["pull_every"]
    if system.kind != "cd-sgd":
        del options["correction_every"]
    return braid.torch.DelayedOptimizer(
        parameters, lr=lr, momentum=momentum, force=system.is_forced, **options
    )
