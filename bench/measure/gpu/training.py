# SPDX-License-Identifier: Apache-2.0
"""Training steps of one model, as a user's script takes them: DistributedDataParallel and FSDP2."""

import contextlib
import dataclasses
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from .device import Device

_LEARNING_RATE = 1e-3
# Buckets that hold one parameter each, as braid-run's scripts get them: the daemon merges gradients.
_ONE_PARAMETER_MIB = 2**-20
_BUCKET_MIB = 25


@dataclasses.dataclass(frozen=True)
class _Prepared:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    alone: Callable[[], contextlib.AbstractContextManager]  # steps in it do not communicate
    # The same model without communication, where the model itself cannot be told.
    plain: "_Prepared | None" = None


class Training:
    """The tasks of one rank. Main thread only."""

    def __init__(self, device: Device, backend: str):
        self._device, self._backend = device, backend
        self._prepared: _Prepared | None = None
        self._batch: torch.Tensor | None = None

    def prepare(self, task: dict) -> dict:
        """Makes the model, and takes some steps: buckets are made anew, braid learns what comes when."""
        self._prepared = None  # before another model takes memory
        self._batch = torch.randn(task["rows"], task["width"], device=self._device.torch)
        make = {"ddp": self._with_ddp, "ddp-buckets": self._with_ddp_buckets, "fsdp": self._with_fsdp}[task["way"]]
        self._prepared = make(task)
        held = [self._step(self._prepared) for _ in range(task["warmup"])]
        if self._prepared.plain is not None:
            self._step(self._prepared.plain)
        return {"held": held, "digest": self._digest()}

    def steps(self, task: dict) -> dict:
        """Seconds of whole steps, and how long backward() held the thread."""
        prepared = self._prepared
        context = contextlib.nullcontext
        if task["alone"]:
            prepared, context = prepared.plain or prepared, prepared.alone
        held: list[float] = []
        with context():
            seconds = [
                self._device.seconds_of(lambda: held.append(self._step(prepared))) for _ in range(task["count"])
            ]
        return {"seconds": seconds, "held": held, "digest": None if task["alone"] else self._digest()}

    def _step(self, prepared: _Prepared) -> float:
        prepared.optimizer.zero_grad(set_to_none=True)
        loss = prepared.model(self._batch).square().mean()
        begin = time.perf_counter()
        loss.backward()
        held = time.perf_counter() - begin
        prepared.optimizer.step()
        return held

    def _digest(self) -> float | None:
        """The same on all ranks if they have the same weights; FSDP2's ranks each have a part."""
        model = self._prepared.model
        if not isinstance(model, DistributedDataParallel):
            return None
        return sum(float(one.detach().double().sum()) for one in model.parameters())

    def _model(self, task: dict) -> nn.Sequential:
        torch.manual_seed(1)
        layers: list[nn.Module] = []
        for _ in range(task["layers"]):
            layers += [nn.Linear(task["width"], task["width"]), nn.GELU()]
        return nn.Sequential(*layers).to(self._device.torch)

    def _with_ddp(self, task: dict) -> _Prepared:
        if self._backend != "braid":
            return self._with_ddp_buckets(task)
        import braid.torch

        model = DistributedDataParallel(self._model(task), bucket_cap_mb=_ONE_PARAMETER_MIB)
        model.register_comm_hook(braid.torch.DDPHookState(model), braid.torch.ddp_hook)
        return _Prepared(model, _optimizer(model), model.no_sync)

    def _with_ddp_buckets(self, task: dict) -> _Prepared:
        model = DistributedDataParallel(self._model(task), bucket_cap_mb=_BUCKET_MIB)
        return _Prepared(model, _optimizer(model), model.no_sync)

    def _with_fsdp(self, task: dict) -> _Prepared:
        plain, model = self._model(task), self._model(task)
        mesh = init_device_mesh(self._device.torch.type, (dist.get_world_size(),))
        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        alone = _Prepared(plain, _optimizer(plain), contextlib.nullcontext)
        return _Prepared(model, _optimizer(model), contextlib.nullcontext, alone)


def _optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=_LEARNING_RATE)
