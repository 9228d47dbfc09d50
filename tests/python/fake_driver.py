# SPDX-License-Identifier: Apache-2.0
"""made_up_gpu.py over the fake CUDA driver (tests/fake_cuda): "GPU" tensors lie in its device memory, which the CPU
may touch here, and streams are the driver's. So libbraid's own copies and waits carry them."""

from __future__ import annotations

import ctypes
import os
import time
import weakref
from ctypes import byref, c_char_p, c_int, c_uint64, c_void_p
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made_up_gpu
import torch

_LIBRARIES = Path(__file__).resolve().parents[2] / "build/release/lib"
LIBRARY = _LIBRARIES / "fake_cuda/libcuda.so.1"
NCCL = _LIBRARIES / "fake_nccl/libnccl.so.2"
# That the CPU may touch device memory is the double's need.
ENVIRONMENT = {"FAKE_CUDA_UNIFIED": "1"}
# Each of a node's two ranks has a GPU, and there is an NCCL that runs on such GPUs.
TWO_GPUS = {**ENVIRONMENT, "FAKE_CUDA_DEVICES": "2", "BRAID_NCCL_LIBRARY": str(NCCL)}
_NOT_READY = 600
_NON_BLOCKING = 1
_COUNTS = (
    "calls host_waits unregistered_copies missing_pages copies copied_bytes kernels waiting_at_exit contexts streams "
    "events allocations allocated_bytes registrations registered_bytes pending_works waiting_streams"
).split()


class _Counts(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in _COUNTS]


class FakeDriverCuda(made_up_gpu.MadeUpCuda):
    """Loads the driver, where libbraid finds it by its name. Its variables must be set before that.

    The process has one GPU, by its local rank. Here its name is GPU, whichever it is.
    """

    def __init__(self) -> None:
        self._driver = ctypes.CDLL(str(LIBRARY), mode=ctypes.RTLD_GLOBAL)
        self._context = c_void_p()
        self._call("cuInit", 0)
        device, count = c_int(), c_int()
        self._call("cuDeviceGetCount", byref(count))
        self._call("cuDeviceGet", byref(device), int(os.environ.get("LOCAL_RANK", "0")) % count.value)
        self._call("cuDevicePrimaryCtxRetain", byref(self._context), device)
        super().__init__(self._allocated)

    def counts(self) -> dict[str, int]:
        """What the driver has counted since the process began."""
        counts = _Counts()
        self._driver.fake_cuda_get_counts(byref(counts))
        return {name: getattr(counts, name) for name in _COUNTS}

    def new_stream(self, device: torch.device, priority: int) -> Any:
        stream = c_void_p()
        self._in_context("cuStreamCreate", byref(stream), _NON_BLOCKING)
        return SimpleNamespace(handle=stream.value)

    def settle(self, job: Any, ticket: int) -> None:
        end = time.monotonic() + made_up_gpu.DEADLINE_S
        stream = c_void_p(self.current_stream(made_up_gpu.GPU))
        while self._in_context("cuStreamQuery", stream) == _NOT_READY:
            assert time.monotonic() < end, f"ticket {ticket} of job {job.name} does not end"
            time.sleep(0.0002)

    def _allocated(self, nbytes: int) -> Any:
        place = c_uint64()
        self._in_context("cuMemAlloc_v2", byref(place), ctypes.c_size_t(nbytes))
        memory = (ctypes.c_ubyte * nbytes).from_address(place.value)
        weakref.finalize(memory, self._in_context, "cuMemFree_v2", place).atexit = False
        return memory

    def current_stream(self, device: torch.device) -> int:
        self._call("cuCtxSetCurrent", self._context)  # As torch leaves it.
        return super().current_stream(device)

    def _in_context(self, function: str, *arguments: Any) -> int:
        self._call("cuCtxSetCurrent", self._context)
        return self._call(function, *arguments)

    def _call(self, function: str, *arguments: Any) -> int:
        code = getattr(self._driver, function)(*arguments)
        if code not in (0, _NOT_READY):
            text = c_char_p()
            self._driver.cuGetErrorName(code, byref(text))
            raise RuntimeError(f"{function}: {text.value.decode() if text.value else code}")
        return code
