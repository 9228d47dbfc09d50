# SPDX-License-Identifier: Apache-2.0
"""The data sets, the models for them, and the order of the batches. The same for all systems."""

from collections.abc import Iterator

import fashion_mnist  # of examples/
import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

from ..paths import DIGITS, FASHION_MNIST

_DIGITS_TEST_EVERY = 5


def load(name: str) -> tuple[TensorDataset, TensorDataset]:
    """For training, and for the test."""
    if name == "digits":
        return _digits()
    return fashion_mnist.load(FASHION_MNIST, "train"), fashion_mnist.load(FASHION_MNIST, "t10k")


def _digits() -> tuple[TensorDataset, TensorDataset]:
    """Lines of 64 grey values from 0 to 16 and the digit."""
    table = torch.from_numpy(np.loadtxt(DIGITS, delimiter=",", dtype=np.float32))
    pixels, labels = table[:, :64] / 8 - 1, table[:, 64].long()
    is_test = torch.arange(len(table)) % _DIGITS_TEST_EVERY == 0
    return TensorDataset(pixels[~is_test], labels[~is_test]), TensorDataset(pixels[is_test], labels[is_test])


class _Residual(nn.Module):
    """A layer that adds to what it is given: so deep models learn from the first step on."""

    def __init__(self, width: int):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values + nn.functional.gelu(self.layer(values))


def make_model(name: str, hidden: int, layers: int) -> nn.Module:
    """Smooth layers only, as fashion_mnist.make_model() explains. `layers`: hidden ones, of digits."""
    if name == "fashion-mnist":
        return fashion_mnist.make_model(hidden)
    return nn.Sequential(
        nn.Linear(64, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
        *(_Residual(hidden) for _ in range(layers - 2)),
        nn.Linear(hidden, 10),
    )  # fmt: skip


def batches(count: int, size: int, rank: int, world_size: int, seed: int) -> Iterator[torch.Tensor]:
    """Without end: the places of a rank's pictures among `count`, `size` at a time.

    All pictures in a random order, then all in another one, and so on; the ranks take turns.
    """
    generator = torch.Generator().manual_seed(seed)
    left = torch.empty(0, dtype=torch.int64)
    while True:
        while len(left) < size * world_size:
            left = torch.cat([left, torch.randperm(count, generator=generator)])
        taken, left = left[: size * world_size], left[size * world_size :]
        yield taken[rank::world_size]
