# SPDX-License-Identifier: Apache-2.0
"""One training on one rank, and what is measured of it."""

import functools
import hashlib
import time

import torch
import torch.distributed as dist
from torch import nn
from training_lib import data

from .optimizers import Trained
from .systems import parse

_load = functools.cache(data.load)


def run(task: dict) -> dict:
    """The figures of this rank."""
    torch.manual_seed(task["seed"])
    pictures, test = _load(task["dataset"])
    model = data.make_model(task["dataset"], task["hidden"], 2)
    trained = Trained(
        model, parse(task["system"]), task["warmup_steps"], task["learning_rate"], task["momentum"]
    )
    places = data.batches(
        len(pictures), task["batch_size"], dist.get_rank(), dist.get_world_size(), task["seed"]
    )
    losses, seconds, right = [], [], []
    for step in range(1, task["steps"] + 1):
        images, labels = pictures[next(places)]
        start = time.perf_counter()
        trained.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(trained.model(images), labels)
        loss.backward()
        trained.optimizer.step()
        seconds.append(time.perf_counter() - start)
        losses.append(loss.item())
        if step % task["evaluate_every"] == 0 or step == task["steps"]:
            trained.settle()
            right.append([step, _count_right(model, test)])
    return {
        "losses": losses,
        "step_seconds": seconds,
        "right": right,
        "test_pictures": len(test),
        "digest": _digest(model),
    }


@torch.no_grad()
def _count_right(model: nn.Module, test: torch.utils.data.TensorDataset) -> int:
    """Of this rank's part of the pictures; nothing is sent."""
    images, labels = test[dist.get_rank() :: dist.get_world_size()]
    parts = zip(images.split(250), labels.split(250), strict=True)
    return sum(int((model(i).argmax(1) == n).sum()) for i, n in parts)


def _digest(model: nn.Module) -> str:
    """Of all bits of the parameters."""
    sha = hashlib.sha256()
    for parameter in model.parameters():
        sha.update(parameter.detach().numpy().tobytes())
    return sha.hexdigest()
