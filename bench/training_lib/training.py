# SPDX-License-Identifier: Apache-2.0
"""One training on one rank, and what is measured of it."""

import hashlib
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from . import data, hooks
from .blocks import block_sizes


class Training:
    def __init__(self, task: dict, training: torch.utils.data.TensorDataset, hook: str):
        torch.manual_seed(task["seed"])
        self._model = DistributedDataParallel(
            data.make_model(task["dataset"], task["hidden"], task["layers"]),
            bucket_cap_mb=task["bucket_mib"],
            gradient_as_bucket_view=True,
        )
        if hook:
            hooks.register(self._model, hook)
        self._optimizer = torch.optim.SGD(
            self._model.parameters(), task["learning_rate"], momentum=task["momentum"]
        )
        self._data = training
        self._batches = data.batches(
            len(training), task["batch_size"], dist.get_rank(), dist.get_world_size(), task["seed"]
        )
        self.losses: list[float] = []
        self.step_seconds: list[float] = []
        self.synchronous_seconds: list[float] = []  # forward and backward pass of each block's first step
        self.local_seconds: list[float] = []  # the same without communication
        self.bytes_sent: list[int] = []  # by the node's interface in each block

    def steps(self) -> int:
        return len(self.losses)

    def run_block(self, steps: int) -> None:
        batches = [self._data[next(self._batches)] for _ in range(steps)]
        dist.barrier()
        with self._model.no_sync():
            self.local_seconds.append(self._differentiate(*batches[0])[1])
        dist.barrier()
        sent = _bytes_sent()
        for place, (images, labels) in enumerate(batches):
            start = time.perf_counter()
            loss, seconds = self._differentiate(images, labels)
            self._optimizer.step()
            self.step_seconds.append(time.perf_counter() - start)
            if place == 0:
                self.synchronous_seconds.append(seconds)
            self.losses.append(loss.item())
        dist.barrier()
        self.bytes_sent.append(_bytes_sent() - sent)

    def _differentiate(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, float]:
        """The loss, and the seconds that it and its gradients took."""
        start = time.perf_counter()
        self._optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self._model(images), labels)
        loss.backward()
        return loss, time.perf_counter() - start

    @torch.no_grad()
    def count_right(self, test: torch.utils.data.TensorDataset) -> int:
        """Of this rank's part of the pictures; nothing is sent."""
        images, labels = test[dist.get_rank() :: dist.get_world_size()]
        parts = zip(images.split(250), labels.split(250), strict=True)
        return sum(int((self._model.module(i).argmax(1) == n).sum()) for i, n in parts)

    def digest(self) -> str:
        """Of all bits of the parameters."""
        sha = hashlib.sha256()
        for parameter in self._model.parameters():
            sha.update(parameter.detach().numpy().tobytes())
        return sha.hexdigest()


def _bytes_sent() -> int:
    interface = os.environ["GLOO_SOCKET_IFNAME"]
    with open(f"/sys/class/net/{interface}/statistics/tx_bytes", encoding="ascii") as file:
        return int(file.read())


def train(task: dict, training: torch.utils.data.TensorDataset, test, hook: str) -> dict:
    """The figures of this rank."""
    one = Training(task, training, hook)
    right = []
    every = task["evaluate_every"]
    for size in block_sizes(task["steps"]):
        before = one.steps()
        one.run_block(size)
        if one.steps() == task["steps"] or one.steps() // every > before // every:
            right.append([one.steps(), one.count_right(test)])
    return {
        "rank": dist.get_rank(),
        "losses": one.losses,
        "step_seconds": one.step_seconds,
        "synchronous_seconds": one.synchronous_seconds,
        "local_seconds": one.local_seconds,
        "bytes_sent": one.bytes_sent,
        "right": right,
        "test_pictures": len(test),
        "digest": one.digest(),
    }
