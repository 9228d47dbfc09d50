# SPDX-License-Identifier: Apache-2.0
"""Runs another trainer of this folder as if its tensors were on a GPU: `moved_to_gpu.py TRAINER ARGUMENTS…`.

torch has no CUDA here, so the trainer's tensors stay the CPU's. What it gives to collectives, and DDP to braid's hook,
is moved to the fake driver's device memory, and results come back when they are waited for. Models' parameters count as
on the GPU.
"""

from __future__ import annotations

import logging
import runpy
import sys
import threading
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import report  # noqa: E402
from fake_driver import FakeDriverCuda  # noqa: E402
from made_up_gpu import GPU  # noqa: E402

from braid.torch.ddp.hook import DDPHookState  # noqa: E402
from braid.torch.group.carrying import CarryingMixin  # noqa: E402
from braid.torch.operations import devices  # noqa: E402
from braid.torch.operations.device_work import DeviceWork  # noqa: E402


class Cuda(FakeDriverCuda):
    def devices_of(self, tensors: Any) -> list[torch.device]:
        listed = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        is_model = any(isinstance(each, torch.nn.Parameter) for each in listed)
        return [GPU] if is_model else super().devices_of(listed)


class Moved:
    """Tensors and their twins on the GPU."""

    def __init__(self, cuda: FakeDriverCuda) -> None:
        self._cuda = cuda
        self._twins: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def there(self, given: Any) -> Any:
        """The twin of a tensor; of lists, lists of twins."""
        if not isinstance(given, torch.Tensor):
            return None if given is None else [self.there(each) for each in given]
        if id(given) not in self._twins:
            twin = self._cuda.put(given.detach()) if given.is_contiguous() else self._laid_out(given.detach())
            self._twins[id(given)] = given, twin
        return self._twins[id(given)][1]

    def back(self, given: Any) -> None:
        """Once: the values of the twins."""
        if isinstance(given, torch.Tensor):
            twin = self._twins.pop(id(given), None)
            if twin is not None:
                given.data.copy_(twin[1])
            return
        for each in given or []:
            self.back(each)

    def _laid_out(self, given: torch.Tensor) -> torch.Tensor:
        """With the strides of what is given."""
        whole = given.new_empty(given.untyped_storage().nbytes() // given.dtype.itemsize)
        view = torch.as_strided(whole, given.size(), given.stride(), given.storage_offset())
        return self._cuda.put(view.copy_(given))


class MovedWork(DeviceWork):
    """A work whose results come back."""

    moved: Moved
    outputs: Any
    value: Any

    def wait(self, timeout: Any = None) -> bool:
        super().wait(timeout)
        self.moved.back(self.outputs)
        return True

    def get_future(self) -> torch.futures.Future:
        future = torch.futures.Future()
        self.wait()
        future.set_result(self.value)
        return future


def move(cuda: FakeDriverCuda, seen: dict[str, int]) -> None:
    run = CarryingMixin._run
    average = DDPHookState.average

    def _run(
        self: Any, collective: int, dtype: int, count: int, inputs: Any, outputs: Any, *rest: Any,
        value: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        if not (inputs or outputs):
            return run(self, collective, dtype, count, inputs, outputs, *rest, value=value, **options)
        moved = Moved(cuda)
        work = run(
            self, collective, dtype, count, moved.there(inputs), moved.there(outputs), *rest,
            value=moved.there(value), **options,
        )  # fmt: skip
        if not isinstance(work, DeviceWork):
            work.wait()  # It has no elements, or threads wait for copies here.
            moved.back(outputs)
            return work
        seen["collectives"] += 1
        work.__class__, work.moved, work.outputs = MovedWork, moved, outputs
        work.value = outputs if value is None else value
        return work

    def averaged(self: DDPHookState, bucket: Any) -> Any:
        seen["buckets"] += 1
        before = cuda.counts()["host_waits"]
        future = average(self, _OnGpu(cuda, bucket))
        seen["host_waits_in_backward"] += cuda.counts()["host_waits"] - before
        return future

    CarryingMixin._run = _run
    DDPHookState.average = averaged


class _OnGpu:
    """A bucket of DDP whose buffer is on the GPU. DDP takes what the future gives."""

    def __init__(self, cuda: FakeDriverCuda, bucket: Any) -> None:
        self._bucket = bucket
        self._buffer = cuda.put(bucket.buffer())

    def buffer(self) -> torch.Tensor:
        return self._buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bucket, name)


def main() -> None:
    cuda = Cuda()
    devices.cuda = cuda
    logging.getLogger("braid").setLevel(logging.INFO)
    heard = report.Heard(logging.INFO)
    seen = {"collectives": 0, "buckets": 0, "host_waits_in_backward": 0}
    move(cuda, seen)
    tell = report.report

    def told(**results: Any) -> None:
        counts = cuda.counts()
        threads = {thread.name for thread in threading.enumerate()}
        assert "MainThread" in threads
        tell(**results, gpu={**seen, **counts, "holds_of": cuda.holds_of, "heard": heard.texts})

    report.report = told
    del sys.argv[0]
    runpy.run_path(str(HERE / sys.argv[0]), run_name="__main__")


if __name__ == "__main__":
    main()
