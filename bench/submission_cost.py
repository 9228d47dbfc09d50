# SPDX-License-Identifier: Apache-2.0
"""What submitting a gradient costs the thread that trains, in microseconds per parameter.

One process, one rank, a braidd to talk to (BRAID_SOCKET); DDP with buckets of one parameter, and
two hooks that take turns, step by step: braid's, and one that does nothing. What is measured is the
time inside of each, the time of the call from C++ with it (as the difference of whole backward
passes), and the processor time of the thread.

    scripts/cluster --nodes 1 --ranks-per-node 1 -- python bench/submission_cost.py
"""

import argparse
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import braid.torch


class Timed:
    """A hook that notes how long it took; None as the inner one does nothing."""

    def __init__(self, hook=None, state=None):
        self.hook, self.state = hook, state
        self.seconds = []

    def __call__(self, _, bucket):
        start = time.perf_counter()
        if self.hook is None:
            future = torch.futures.Future()
            future.set_result(bucket.buffer())
        else:
            future = self.hook(self.state, bucket)
        self.seconds.append(time.perf_counter() - start)
        return future


class Model(torch.nn.Module):
    def __init__(self, parameters, numel):
        super().__init__()
        self.values = torch.nn.ParameterList(torch.ones(numel) for _ in range(parameters))

    def forward(self):
        return sum((values * values).sum() for values in self.values)


def make_model(parameters, numel, hook):
    model = DistributedDataParallel(Model(parameters, numel), bucket_cap_mb=2.0**-20)
    if hook:
        timed = Timed(braid.torch.ddp_hook, braid.torch.DDPHookState(model))
    else:
        timed = Timed()
    # A bound method has no annotations for DDP to look at.
    model.register_comm_hook(None, lambda state, bucket: timed(state, bucket))
    return model, timed


def step(model):
    """Wall-clock and processor seconds of this thread in one backward pass."""
    loss = model()
    start, processor = time.perf_counter(), time.thread_time()
    loss.backward()
    return time.perf_counter() - start, time.thread_time() - processor


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=int, default=160)
    parser.add_argument("--numel", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    braid.torch.register()
    dist.init_process_group("braid")
    models = [make_model(options.parameters, options.numel, hook) for hook in (True, False)]
    times = ([], [])
    for number in range(options.steps + 10):
        for (model, timed), out in zip(models, times):
            measured = step(model)
            if number < 10:  # Buckets are made again, tensors registered.
                timed.seconds.clear()
            else:
                out.append(measured)
    print(f"{options.parameters} parameters of {options.numel} elements, medians of "
          f"{options.steps} steps, microseconds per parameter")
    print(f"{'':22}{'in the hook':>14}{'  9 of 10 under':>16}{'backward':>12}{'processor':>12}")
    for name, (_, timed), out in zip(("braid", "does nothing"), models, times):
        seconds = sorted(timed.seconds)
        wall = statistics.median(w for w, _ in out) / options.parameters
        processor = statistics.median(p for _, p in out) / options.parameters
        cells = statistics.median(seconds), seconds[len(seconds) * 9 // 10], wall, processor
        print(f"{name:22}{cells[0] * 1e6:14.1f}{cells[1] * 1e6:16.1f}"
              f"{cells[2] * 1e6:12.1f}{cells[3] * 1e6:12.1f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
