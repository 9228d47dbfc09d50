# SPDX-License-Identifier: Apache-2.0
"""When copies from and to GPUs may be relied on where threads wait for them. No GPU is needed: streams
and events are recorders here, and what stands for a tensor on a GPU copies at once."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from braid import Memory  # noqa: E402
from braid.torch.operations import devices, packing, work  # noqa: E402

pytestmark = pytest.mark.once

DEVICES = [torch.device("cuda", 0), torch.device("cuda", 1)]


class OnGpu:
    """A tensor of a GPU; what is copied to and from it is told to the log."""

    is_cuda = True

    def __init__(self, log, values, device=DEVICES[0]):
        self.values, self.device, self._log = values, device, log
        self.nbytes, self.dtype, self.shape = values.nbytes, values.dtype, values.shape
        self.data = self

    def is_contiguous(self):
        return self.values.is_contiguous()

    def detach(self):
        self._log.append(("read", self.device.index))
        return self.values

    def copy_(self, given, non_blocking=False):
        self._log.append(("write", self.device.index))
        self.values.copy_(given)


@pytest.fixture
def log(monkeypatch):
    """What happens on streams, in order. `name` says which streams are current."""
    events = []
    current = SimpleNamespace(name="calling")

    def current_stream(device):
        def record_event():
            events.append(("record", device.index, current.name))
            return current.name

        return SimpleNamespace(
            synchronize=lambda: events.append(("synchronize", device.index)),
            record_event=record_event,
            wait_event=lambda event: events.append(("wait", device.index, current.name, event)),
        )

    monkeypatch.setattr(torch.cuda, "current_stream", current_stream)
    return SimpleNamespace(events=events, current=current)


def buffer(nbytes):
    """Memory, and what keeps it."""
    raw = (ctypes.c_ubyte * nbytes)()
    return Memory(ctypes.addressof(raw), nbytes), raw


def test_results_are_there_on_return_whoever_looks_at_them(log):
    memory, raw = buffer(24)
    torch.frombuffer(raw, dtype=torch.float32).copy_(torch.arange(6.0))
    first = OnGpu(log.events, torch.zeros(2))
    turned = OnGpu(log.events, torch.zeros(2, 2).t(), DEVICES[1])
    packing.scatter_to(memory.address, [first, turned])
    assert first.values.tolist() == [0, 1] and turned.values.tolist() == [[2, 3], [4, 5]]
    assert log.events == [("write", 0), ("write", 1), ("synchronize", 0), ("synchronize", 1)]


def test_one_contiguous_result_is_there_on_return(log):
    memory, raw = buffer(8)
    torch.frombuffer(raw, dtype=torch.float32).copy_(torch.tensor([3.0, 4.0]))
    job = SimpleNamespace(result_address=lambda ticket: (memory.address, 8))
    output = OnGpu(log.events, torch.zeros(2))
    packing.unpack_whole([output])(job, 1)
    assert output.values.tolist() == [3, 4]
    assert log.events == [("write", 0), ("synchronize", 0)]


def test_blocks_of_ranks_are_there_on_return(log):
    memories = [buffer(8) for _ in range(2)]
    for rank, (_, raw) in enumerate(memories):
        torch.frombuffer(raw, dtype=torch.float32).fill_(rank + 1)
    job = SimpleNamespace(result_address_of_rank=lambda ticket, rank: (memories[rank][0].address, 8))
    outputs = [[OnGpu(log.events, torch.zeros(2))] for _ in range(2)]
    packing.unpack_by_rank(outputs)(job, 1)
    assert [blocks[0].values.tolist() for blocks in outputs] == [[1, 1], [2, 2]]
    assert log.events == [("write", 0), ("write", 0), ("synchronize", 0)]


def test_inputs_are_there_before_they_are_submitted(log):
    memory, raw = buffer(16)
    taken = []
    place = SimpleNamespace(take=lambda nbytes: taken.append(nbytes) or memory)
    inputs = [torch.tensor([1.0]), OnGpu(log.events, torch.zeros(0)), OnGpu(log.events, torch.ones(3))]
    assert packing.pack(place, inputs) is memory
    assert torch.frombuffer(raw, dtype=torch.float32).tolist() == [1, 1, 1, 1]
    assert taken == [16]
    assert log.events == [("read", 0)]


def test_a_buffer_whose_copy_fails_is_given_back():
    memory, raw = buffer(16)
    back = []
    place = SimpleNamespace(take=lambda nbytes: memory, give_back=back.append)

    def fail():
        raise RuntimeError("an illegal memory access")

    given = SimpleNamespace(is_cuda=True, device=DEVICES[0], nbytes=16, dtype=torch.float32)
    given.shape, given.detach = (4,), fail
    with pytest.raises(RuntimeError, match="illegal memory access"):
        packing.pack(place, [given])
    assert back == [memory]


def test_a_receive_is_copied_after_what_its_tensor_was_used_for(log):
    """It is there for a second wait, too, on another stream."""
    received = SimpleNamespace(wait=lambda *_: log.events.append("received"))
    tensor = OnGpu(log.events, torch.zeros(2))
    receive = work.CopyBackWork(received, [tensor], [torch.tensor([5.0, 6.0])])
    log.current.name = "waiting"
    receive.wait()
    receive.wait()
    assert tensor.values.tolist() == [5, 6]
    assert log.events == [
        ("record", 0, "calling"), "received", ("wait", 0, "waiting", "calling"), ("write", 0),
        ("record", 0, "waiting"), "received", ("wait", 0, "waiting", "waiting"),
    ]  # fmt: skip


def test_devices_are_those_of_the_tensors_on_gpus():
    on_gpus = [OnGpu([], torch.zeros(1), device) for device in (DEVICES[1], DEVICES[0], DEVICES[1])]
    assert devices.cuda.devices_of([torch.zeros(1), *on_gpus]) == DEVICES
    assert devices.cuda.devices_of(torch.zeros(1)) == []
