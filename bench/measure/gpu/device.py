# SPDX-License-Identifier: Apache-2.0
"""The device of a worker's tensors: a GPU, or the processor in a rehearsal. torch has the same functions for both."""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist


class Device:
    """Main thread only, but for `other_stream`."""

    def __init__(self, name: str):
        self.torch = torch.device(name, 0) if name != "cpu" else torch.device(name)
        self._module = torch.get_device_module(self.torch)
        self._module.set_device(self.torch)

    @property
    def is_gpu(self) -> bool:
        return self.torch.type != "cpu"

    def other_stream(self):
        """A new stream behind what is queued on the current one, as a context."""
        stream = self._module.Stream()
        stream.wait_stream(self._module.current_stream())
        return self._module.stream(stream)

    def wait_for_stream(self) -> None:
        """Until what is queued on the current stream is over."""
        event = self._module.Event()
        event.record()
        event.synchronize()

    def wait_for_all(self) -> None:
        self._module.synchronize()

    def seconds_of(self, run: Callable[[], object]) -> float:
        """From a moment at which all ranks are idle until this rank's device is."""
        self.wait_for_all()
        dist.barrier()
        begin = time.perf_counter()
        run()
        self.wait_for_all()
        return time.perf_counter() - begin
