# SPDX-License-Identifier: Apache-2.0
"""One training on one rank, and what is measured of it."""

import functools
import hashlib
import os
import time

import torch
import torch.distributed as dist
from torch import nn

from . import data
from .figures import block_sizes
from .optimizers import Trained
from .systems import KFAC, parse

_load = functools.cache(data.load)


class Training:
    def __init__(self, task: dict, pictures: torch.utils.data.TensorDataset):
        torch.manual_seed(task["seed"])
        system = parse(task["system"])
        self.model = data.make_model(task["dataset"], task["hidden"], task["layers"])
        self.trained = Trained(self.model, system, task["warmup_steps"], task["learning_rate"], task["momentum"])
        # K-FAC would take a pass without communication for one of a step.
        self._looks_at_passes = system.uses_ddp and system.kind != KFAC
        self._pictures = pictures
        self._batches = data.batches(
            len(pictures), task["batch_size"], dist.get_rank(), dist.get_world_size(), task["seed"]
        )
        self.losses: list[float] = []
        self.step_seconds: list[float] = []
        self.synchronous_seconds: list[float] = []  # forward and backward pass of each block's first step
        self.local_seconds: list[float] = []  # the same without communication
        self.bytes_sent: list[int] = []  # by the node's interface in each block

    def run_block(self, steps: int) -> None:
        batches = [self._pictures[next(self._batches)] for _ in range(steps)]
        dist.barrier()
        if self._looks_at_passes:
            with self.trained.model.no_sync():
                self.local_seconds.append(self._differentiate(*batches[0])[1])
            dist.barrier()
        sent = _bytes_sent()
        for place, (images, labels) in enumerate(batches):
            start = time.perf_counter()
            loss, seconds = self._differentiate(images, labels)
            self.trained.optimizer.step()
            self.step_seconds.append(time.perf_counter() - start)
            if self._looks_at_passes and place == 0:
                self.synchronous_seconds.append(seconds)
            self.losses.append(loss.item())
        dist.barrier()
        self.bytes_sent.append(_bytes_sent() - sent)

    def _differentiate(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, float]:
        """The loss, and the seconds that it and its gradients took."""
        start = time.perf_counter()
        self.trained.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.trained.model(images), labels)
        loss.backward()
        return loss, time.perf_counter() - start

    @torch.no_grad()
    def count_right(self, test: torch.utils.data.TensorDataset) -> int:
        """How many of this rank's part of the pictures the model gets right; nothing is sent."""
        images, labels = test[dist.get_rank() :: dist.get_world_size()]
        parts = zip(images.split(250), labels.split(250), strict=True)
        return sum(int((self.model(i).argmax(1) == n).sum()) for i, n in parts)

    def digest(self) -> str:
        """A digest of all bits of the parameters."""
        sha = hashlib.sha256()
        for parameter in self.model.parameters():
            sha.update(parameter.detach().numpy().tobytes())
        return sha.hexdigest()


def _bytes_sent() -> int:
    interface = os.environ["GLOO_SOCKET_IFNAME"]
    with open(f"/sys/class/net/{interface}/statistics/tx_bytes", encoding="ascii") as file:
        return int(file.read())


def run(task: dict) -> dict:
    """The figures of this rank."""
    pictures, test = _load(task["dataset"])
    one = Training(task, pictures)
    right = []
    for size in block_sizes(task["steps"]):
        one.run_block(size)
        steps = len(one.losses)
        if steps == task["steps"] or steps % task["evaluate_every"] == 0:
            one.trained.settle()
            right.append([steps, one.count_right(test)])
    return {
        "losses": one.losses,
        "step_seconds": one.step_seconds,
        "synchronous_seconds": one.synchronous_seconds,
        "local_seconds": one.local_seconds,
        "bytes_sent": one.bytes_sent,
        "right": right,
        "test_pictures": len(test),
        "digest": one.digest(),
    }
