# SPDX-License-Identifier: Apache-2.0
"""A system's model and optimizer, as a script has them, on each rank. Over gloo nothing of braid is loaded."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook, quantization_hooks
from torch.nn.parallel import DistributedDataParallel

from . import systems
from .systems import System

_RANK = 4
_FIRST_STEP = 2  # the earliest that torch allows with error feedback; DDP has its final buckets then


class _InTurn:
    """Optimizers of the parts of a model as one, and what takes its step before them."""

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer], before: Any = None):
        self._optimizers, self._before = optimizers, before

    def zero_grad(self) -> None:
        for each in self._optimizers:
            each.zero_grad()

    def step(self) -> None:
        if self._before is not None:
            self._before.step()
        for each in self._optimizers:
            each.step()


class Trained:
    """`model` is what a script calls; `optimizer` what it steps."""

    def __init__(self, model: nn.Module, system: System, warmup_steps: int, lr: float, momentum: float):
        self.model: nn.Module = model
        self._system = system
        self._keeper: Any = None
        parameters = list(model.parameters())
        if not system.uses_ddp:
            import braid.torch as own
        if system.is_delayed:
            options = _delay_options(system, warmup_steps)
            self.optimizer = own.DelayedOptimizer(parameters, lr=lr, momentum=momentum, **options)
        elif system.kind in (systems.SHARDED, systems.ACCO):
            kind = own.ShardedOptimizer if system.kind == systems.SHARDED else own.Acco
            overlaps = {"overlap_forward": system.overlaps_forward, "overlap_backward": system.overlaps_backward}
            self.optimizer = kind(
                parameters, torch.optim.SGD, lr=lr, momentum=momentum, model=model, pull=system.pull,
                **(overlaps if system.kind == systems.SHARDED else {}),
            )  # fmt: skip
        else:
            self.optimizer = torch.optim.SGD(parameters, lr, momentum=momentum)
            if system.uses_ddp:
                self._use_ddp()
                self._use_others(lr)
            elif system.kind == systems.DILOCO:
                self._keeper = own.DiLoCo(model, self.optimizer, system.sync_every)
            else:
                self._keeper = own.PostLocalSGD(self.optimizer, system.sync_every)

    def _use_ddp(self) -> None:
        self.model = DistributedDataParallel(
            self.model, bucket_cap_mb=self._system.bucket_mib, gradient_as_bucket_view=True
        )
        if self._system.hook:
            _register_hook(self.model, self._system.hook)

    def _use_others(self, lr: float) -> None:
        """Instead of SGD, or before it."""
        kind, parameters = self._system.kind, list(self.model.parameters())
        if kind == systems.ADAMW:
            self.optimizer = torch.optim.AdamW(parameters, lr)
        elif kind == systems.KFAC:
            from braid.torch.kfac import KFAC

            kfac = KFAC(self.model, lr=lr, **dict(self._system.kfac))
            self.optimizer = _InTurn([self.optimizer], before=kfac)
        elif kind == systems.MUON:
            from braid.torch import placed

            matrices = [each for each in parameters if each.ndim == 2]
            rest = [each for each in parameters if each.ndim != 2]
            muon = placed(torch.optim.Muon(matrices, lr))
            self.optimizer = _InTurn([muon, torch.optim.AdamW(rest, self._system.rest_learning_rate)])

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


def _delay_options(system: System, warmup_steps: int) -> dict:
    options = dataclasses.asdict(system.delay)
    if options["warmup_steps"] is None:
        options["warmup_steps"] = warmup_steps
    if system.kind != "ssd-sgd":
        del options["pull_every"]
    if system.kind != "cd-sgd":
        del options["correction_every"]
    return {**options, "force": system.is_forced}


def _register_hook(model: DistributedDataParallel, name: str) -> None:
    """One of systems.HOOKS."""
    state = None
    if "powersgd" in name:
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=_RANK, start_powerSGD_iter=_FIRST_STEP
        )
    hook = {
        "fp16": default_hooks.fp16_compress_hook,
        "bf16": default_hooks.bf16_compress_hook,
        "powersgd": powerSGD_hook.powerSGD_hook,
        "batched-powersgd": powerSGD_hook.batched_powerSGD_hook,
        "quantize-per-tensor": quantization_hooks.quantization_pertensor_hook,
        "quantize-per-channel": quantization_hooks.quantization_perchannel_hook,
    }[name]
    model.register_comm_hook(state, hook)
