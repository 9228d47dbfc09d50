# SPDX-License-Identifier: Apache-2.0
"""What gradients cost a backward pass under DistributedDataParallel: braid beside gloo.

Each rank has two equal models, one on a group of braid and one on a group of gloo. They take turns, step by step, so
that whatever else the machine does meets both. A ratio is the median over the steps of braid's time over gloo's in the
same turn; processor time is that of the trainer's process, all threads together.

    scripts/cluster --nodes 2 --ranks-per-node 1 -- python bench/backward_cost.py 160x128 2000x128 160x150000
"""

import argparse
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import braid.torch

WARM_UP_STEPS = 8  # Buckets are made again, tensors registered, the first plans made.


class Model(torch.nn.Module):
    def __init__(self, parameters, numel):
        super().__init__()
        self.values = torch.nn.ParameterList(torch.ones(numel) for _ in range(parameters))

    def forward(self):
        return sum((values * values).sum() for values in self.values)


def shape_of(text):
    parameters, _, numel = text.partition("x")
    if not (parameters.isdecimal() and numel.isdecimal()):
        raise argparse.ArgumentTypeError(f"'{text}' is not PARAMETERSxELEMENTS, as in 160x128")
    return int(parameters), int(numel)


def step(model):
    """Wall-clock and processor seconds of one backward pass."""
    loss = model()
    dist.barrier()
    start, processor = time.perf_counter(), time.process_time()
    loss.backward()
    return time.perf_counter() - start, time.process_time() - processor


def measure(shape, groups, steps):
    """The times of each group's model, step by step, and braid's number of planned tensors."""
    models = [DistributedDataParallel(Model(*shape), process_group=group) for group in groups]
    times = ([], [])
    for number in range(steps + WARM_UP_STEPS):
        # Which one comes first changes, for the first one's caches are cold.
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            measured = step(models[which])
            if number >= WARM_UP_STEPS:
                times[which].append(measured)
    return times


def report(shape, times):
    cells = []
    for kind in (0, 1):
        ours, theirs = ([each[kind] for each in of_one] for of_one in times)
        ratio = statistics.median(mine / other for mine, other in zip(ours, theirs))
        cells += [statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3, ratio]
    print(f"{shape[0]:>10} x {shape[1]:<10}" + "".join(f"{cell:11.2f}" for cell in cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", type=shape_of, nargs="+", metavar="PARAMETERSxELEMENTS")
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    braid.torch.enable()
    dist.init_process_group("gloo")
    ours = dist.distributed_c10d._get_default_group()
    gloo = dist.new_group.__wrapped__(backend="gloo")
    if dist.get_rank() == 0:
        print(f"{'parameters x elements':>23}{'braid, ms':>11}{'gloo, ms':>11}{'ratio':>11}"
              f"{'CPU, ms':>11}{'gloo, CPU':>11}{'ratio':>11}")
    for shape in options.shapes:
        times = measure(shape, (ours, gloo), options.steps)
        if dist.get_rank() == 0:
            report(shape, times)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
