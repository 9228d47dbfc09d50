# SPDX-License-Identifier: Apache-2.0
"""All-reduces: how long they take, how their bytes reach the host, and what they cost a computation beside them."""

import json
import os
import tempfile
import threading
import time

import torch
import torch.distributed as dist

from .device import Device
from .figures import copy_rates

_FLOAT_BYTES = 4
_PRODUCTS_AT_ONCE = 20


class Traffic:
    """The tasks of one rank. Main thread only."""

    def __init__(self, device: Device):
        self._device = device

    def _values(self, nbytes: int) -> torch.Tensor:
        return torch.ones(nbytes // _FLOAT_BYTES, device=self._device.torch)

    def all_reduce(self, task: dict) -> dict:
        values = self._values(task["bytes"])
        run = lambda: dist.all_reduce(values)  # noqa: E731
        return {"seconds": [self._device.seconds_of(run) for _ in range(task["iterations"])]}

    def communicators(self, task: dict) -> dict:
        """AIACC-Training's way: one all-reduce in parts, each over a communicator and a stream of its own."""
        groups = [dist.new_group() for _ in range(task["count"])]
        parts = self._values(task["bytes"]).chunk(task["count"])

        def run() -> None:
            works = [
                dist.all_reduce(part, group=group, async_op=True)
                for part, group in zip(parts, groups, strict=True)
            ]
            for work in works:
                work.wait()

        run()  # connects
        seconds = [self._device.seconds_of(run) for _ in range(task["iterations"])]
        for group in groups:
            dist.destroy_process_group(group)
        return {"seconds": seconds}

    def copies(self, task: dict) -> dict:
        """How fast this process copies between GPU and host while it reduces: CUPTI's records of each copy."""
        values = self._values(task["bytes"])
        activities = [torch.profiler.ProfilerActivity.CPU]
        if self._device.is_gpu:
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities) as profile:
            for _ in range(task["iterations"]):
                dist.all_reduce(values)
            self._device.wait_for_all()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            profile.export_chrome_trace(path)
            with open(path, encoding="utf-8") as file:
                return {"rates": copy_rates(json.load(file)["traceEvents"])}

    def beside(self, task: dict) -> dict:
        """Products per second of rank 0, with an all-reduce under way where `bytes` are given; other ranks compute
        nothing: a rank that waited in a barrier of NCCL would keep the GPU busy."""
        rate, outlasted = None, None
        carrier = None
        if task["bytes"]:
            carrier = threading.Thread(target=self._carry, args=(self._values(task["bytes"]),))
            self._device.wait_for_all()
            dist.barrier()
            carrier.start()
        if dist.get_rank() == 0:
            rate = self._products_per_second(task["product"], task["seconds"])
        if carrier is not None:
            outlasted = carrier.is_alive()
            carrier.join()
        return {"rate": rate, "outlasted": outlasted}

    def _carry(self, values: torch.Tensor) -> None:
        """In a thread, because a collective may hold its caller until the end."""
        with self._device.other_stream():
            dist.all_reduce(values)
            self._device.wait_for_stream()

    def _products_per_second(self, size: int, seconds: float) -> float:
        matrix = torch.randn(size, size, device=self._device.torch)
        count, begin = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < seconds:
            for _ in range(_PRODUCTS_AT_ONCE):
                matrix @ matrix
            self._device.wait_for_stream()
            count += _PRODUCTS_AT_ONCE
        return count / elapsed
