# SPDX-License-Identifier: Apache-2.0
"""Trains a small CNN on Fashion-MNIST with DistributedDataParallel: an ordinary PyTorch script.

Start one process per rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, as torchrun does:

    torchrun --nproc-per-node 4 examples/fashion_mnist.py

--output DIRECTORY keeps what was measured (rank-N.json) and the trained parameters (rank-N.pt).
"""

import argparse
import gzip
import json
import os
import struct
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist",
                        help="folder with the four idx files of Fashion-MNIST (%(default)s)")
    parser.add_argument("--output", help="folder for measurements and parameters")
    parser.add_argument("--steps", type=int, default=200, help="training steps (%(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="images per rank and step (%(default)s)")
    parser.add_argument("--hidden", type=int, default=2048, help="width of the hidden layer (%(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def read_idx(path):
    """Reads an idx file: two zero bytes, type (8: uint8), dimensions, one size each, the data."""
    with gzip.open(path) as file:
        zero, dtype, dimensions = struct.unpack(">HBB", file.read(4))
        if zero != 0 or dtype != 8:
            raise ValueError(f"{path}: not an idx file of bytes")
        shape = struct.unpack(f">{dimensions}I", file.read(4 * dimensions))
        return torch.from_numpy(np.frombuffer(file.read(), np.uint8).reshape(shape).copy())


def load(folder, split):
    images = read_idx(os.path.join(folder, f"{split}-images-idx3-ubyte.gz"))
    labels = read_idx(os.path.join(folder, f"{split}-labels-idx1-ubyte.gz"))
    images = images.unsqueeze(1).float().div_(255)
    return TensorDataset((images - 0.286) / 0.353, labels.long())


def make_model(hidden):
    """Smooth layers only: a ReLU or a maximum turns a difference in the last bit, which any change in the order of
    additions makes, into another gradient, and two trainings drift apart that should end alike."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.GELU(), nn.AvgPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2), nn.GELU(), nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, hidden), nn.GELU(),
        nn.Linear(hidden, 10),
    )


def train(model, loader, sampler, steps, optimizer):
    """Trains for that many steps; returns the losses, and the seconds of each step and of some without communication.

    Those are taken in between, on the same batch, with gradients that stay local and are thrown away: the machine is
    then as busy as in the steps that they are compared with.
    """
    losses, step_seconds, compute_seconds = [], [], []
    epoch = 0
    while len(losses) < steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for images, labels in loader:
            local_seconds = None
            if len(losses) % 5 == 4:
                optimizer.zero_grad()
                start = time.perf_counter()
                with model.no_sync():
                    nn.functional.cross_entropy(model(images), labels).backward()
                local_seconds = time.perf_counter() - start

            optimizer.zero_grad()
            start = time.perf_counter()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            synchronized = time.perf_counter()
            optimizer.step()
            end = time.perf_counter()

            losses.append(loss.item())
            step_seconds.append(end - start)
            if local_seconds is not None:
                compute_seconds.append(local_seconds + end - synchronized)
            if dist.get_rank() == 0 and len(losses) % 25 == 0:
                print(f"step {len(losses):4d}  loss {losses[-1]:.4f}  {step_seconds[-1] * 1e3:.0f} ms", flush=True)
            if len(losses) == steps:
                break
    return losses, step_seconds, compute_seconds


@torch.no_grad()
def accuracy(model, dataset):
    """The share of right answers; each rank looks at its part of the data."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    correct = torch.zeros(1, dtype=torch.int64)
    for images, labels in DataLoader(torch.utils.data.Subset(dataset, range(rank, len(dataset), world_size)), 250):
        correct += (model(images).argmax(1) == labels).sum()
    dist.all_reduce(correct)
    return correct.item() / len(dataset)


def time_all_reduce(elements, repeats):
    """Seconds of each all-reduce of a tensor as large as all gradients together."""
    tensor = torch.ones(elements)
    seconds = []
    for _ in range(repeats):
        tensor.fill_(1)
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(tensor)
        seconds.append(time.perf_counter() - start)
        if not torch.all(tensor == dist.get_world_size()):
            raise RuntimeError("the all-reduce returned a wrong sum")
    return seconds


def main():
    arguments = parse_arguments()
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()

    training_data = load(arguments.data, "train")
    sampler = DistributedSampler(training_data, seed=arguments.seed)
    loader = DataLoader(training_data, arguments.batch_size, sampler=sampler, drop_last=True)

    torch.manual_seed(arguments.seed)
    model = DistributedDataParallel(make_model(arguments.hidden))
    optimizer = torch.optim.SGD(model.parameters(), arguments.learning_rate, momentum=0.9)
    elements = sum(parameter.numel() for parameter in model.parameters())
    if rank == 0:
        print(f"{world_size} ranks, {elements:,} parameters, {arguments.steps} steps", flush=True)

    losses, step_seconds, compute_seconds = train(model, loader, sampler, arguments.steps, optimizer)
    test_accuracy = accuracy(model.module, load(arguments.data, "t10k"))
    if rank == 0:
        print(f"accuracy {test_accuracy:.4f}", flush=True)

    if arguments.output:
        os.makedirs(arguments.output, exist_ok=True)
        torch.save(model.module.state_dict(), os.path.join(arguments.output, f"rank-{rank}.pt"))
        all_reduce_seconds = time_all_reduce(elements, repeats=12)
        with open(os.path.join(arguments.output, f"rank-{rank}.json"), "w") as file:
            json.dump({
                "rank": rank,
                "world_size": world_size,
                "gradient_bytes": 4 * elements,
                "batch_size": arguments.batch_size,
                "accuracy": test_accuracy,
                "losses": losses,
                "step_seconds": step_seconds,
                "compute_seconds": compute_seconds,
                "all_reduce_seconds": all_reduce_seconds,
            }, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
