# SPDX-License-Identifier: Apache-2.0
"""A job whose ranks are threads of one process: braid.Job, as far as process groups and optimizers use it. Weights are
updated by reference_owner.py."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections.abc import Sequence
from typing import Any

import torch
from reference_owner import Owner, reduced

import braid
from braid import Collective, Update, UpdateAction
from braid._devices import DeviceMemory
from braid.errors import DeadlineExceededError, InvalidArgumentError, JobFailedError, ResourceExhaustedError

DEADLINE_S = 120
_TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8]


class World:
    """What the ranks of a job have in common."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = threading.Condition()
        self.operations: dict[tuple[str, int], Operation] = {}
        self.owners: dict[str, Owner] = {}
        self.failure = ""
        self.is_held = False
        self.levels = 1  # As Job.open_levels() has it.
        self.opened: set[int] = set()  # Ranks.
        # What ranks have told of placed work: rank, work, items, spans, load.
        self.told: list[tuple[Any, ...]] = []
        self.sends: list[Letter] = []  # That wait for their receives.
        self.receives: list[Letter] = []
        # What was asked of owners: action by name and step.
        self.actions: list[UpdateAction] = []

    def hold(self, is_held: bool) -> None:
        """While it is held no update ends, as where the network is blocked."""
        with self.changed:
            self.is_held = is_held
            if not is_held:
                for operation in list(self.operations.values()):
                    self.end_if_complete(operation)
            self.changed.notify_all()

    def fail(self, text: str) -> None:
        with self.changed:
            self.failure = self.failure or text
            self.changed.notify_all()

    def end_if_complete(self, operation: Operation) -> None:
        if operation.results is None and len(operation.inputs) == self.size:
            if not (self.is_held and operation.updates):
                operation.end(self)
                self.changed.notify_all()


class Operation:
    """One collective. Inputs are read where they lie, when it ends, and not later; results are copies."""

    def __init__(self, name: str, collective: int, reduction: int, root: int) -> None:
        self.name = name
        self.collective, self.reduction, self.root = collective, reduction, root
        self.inputs: dict[int, torch.Tensor] = {}
        self.updates: dict[int, Update] = {}
        self.results: list[torch.Tensor] | None = None

    def end(self, world: World) -> None:
        inputs = [self.inputs[rank] for rank in range(world.size)]
        if self.updates:
            first = bytes(self.updates[0])
            if any(bytes(update) != first for update in self.updates.values()):
                world.failure = f"MISMATCH: ranks disagree about the update of {self.name}"
                return
            result = world.owners[self.name].act(self.updates[0], inputs, self.reduction)
            world.actions.append(UpdateAction(self.updates[0].action))
        elif self.collective == Collective.BROADCAST:
            result = inputs[self.root]
        elif self.collective == Collective.ALL_GATHER:
            result = torch.cat(inputs)
        elif self.collective == Collective.REDUCE_SCATTER:
            self.results = [each.clone() for each in reduced(inputs, self.reduction).chunk(world.size)]
            return
        elif self.collective == Collective.BARRIER:
            result = torch.empty(0)
        else:
            result = reduced(inputs, self.reduction)
        self.results = [result.clone() for _ in inputs]


class Letter:
    """A message on its way: its bytes are copied when its receive is there."""

    name = "a message"

    def __init__(self, rank: int, peer: int, tag: int) -> None:
        self.rank, self.peer, self.tag = rank, peer, tag
        self.values = torch.empty(0)  # A send's.
        self.source = rank
        self.results: dict[int, torch.Tensor] | None = None  # By the rank that looks.

    def takes(self, sent: Letter) -> bool:
        """Whether this receive does."""
        return (sent.peer, sent.tag) == (self.rank, self.tag) and self.peer in (sent.rank, braid.ANY_RANK)


class ThreadJob:
    """One rank's membership."""

    socket_path = None
    master_address = "127.0.0.1"
    is_open = True
    nodes = 1  # Each of its tensors is one operation.
    arena_is_full = False
    streams_can_wait = True  # Otherwise threads wait, and queue the copies of results.

    def __init__(self, world: World, rank: int, name: str) -> None:
        self.world, self.rank, self.name, self.world_size = world, rank, name, world.size
        self._tensors: dict[int, braid.TensorSpec] = {}
        self._buffers: dict[int, Any] = {}
        self._tickets: dict[int, Operation | Letter] = {}
        self._next = itertools.count(1)
        self._device_steps: dict[int, int] = {}
        self._devices: dict[int, DeviceMemory] = {}  # by ticket

    def close(self) -> None:
        pass

    def open_levels(self, stream: int, seconds: float | None = None) -> tuple[int, str]:
        with self.world.changed:
            assert self.rank not in self.world.opened
            self.world.opened.add(self.rank)
            self.world.changed.notify_all()
            all_came = lambda: len(self.world.opened) == self.world.size or self.world.failure  # noqa: E731
            assert self.world.changed.wait_for(all_came, DEADLINE_S), "not all ranks open levels"
            if self.world.failure:
                raise JobFailedError(self.world.failure)
        return self.world.levels, "chosen by the test"

    def tell_work(self, work: str, items: Sequence[Any], spans: Sequence[Any] = (), load: Any = None) -> None:
        with self.world.changed:
            self.world.told.append((self.rank, work, items, spans, load))

    def register(self, specs: list[braid.TensorSpec]) -> list[int]:
        handles = []
        for spec in specs:
            handle = next(self._next)
            self._tensors[handle] = spec
            handles.append(handle)
            if spec.state_slots:
                with self.world.changed:
                    owner = Owner(spec.count, _TYPES[spec.dtype], spec.state_slots)
                    self.world.owners.setdefault(spec.name, owner)
        return handles

    def unregister(self, handles: Sequence[int]) -> None:
        names = {self._tensors[handle].name for handle in handles}
        if any(operation.name in names for operation in self._tickets.values()):
            raise InvalidArgumentError(f"INVALID_ARGUMENT: one of {names} still has a ticket")
        for handle in handles:
            del self._tensors[handle]

    def allocate(self, nbytes: int) -> braid.Memory:
        if self.arena_is_full:
            raise ResourceExhaustedError(f"RESOURCE_EXHAUSTED: no room for {nbytes} bytes")
        buffer = (ctypes.c_ubyte * max(1, nbytes))()
        address = ctypes.addressof(buffer)
        self._buffers[address] = buffer
        return braid.Memory(address, nbytes)

    def free(self, memory: braid.Memory) -> None:
        del self._buffers[memory.address]

    def blocks(self) -> int:
        """How many buffers are allocated."""
        return len(self._buffers)

    def repeated(self, tensor: int, memory: braid.Memory, reduction: int = 0) -> RepeatedThread:
        return RepeatedThread(self, tensor, memory.address, reduction)

    def repeated_update(self, tensor: int, memory: braid.Memory, reduction: int = 1) -> RepeatedThreadUpdate:
        return RepeatedThreadUpdate(self, tensor, memory.address, reduction)

    def repeated_device(
        self, tensor: int, reduction: int = 0, update: Update | None = None
    ) -> RepeatedThreadDevice:
        return RepeatedThreadDevice(self, tensor, reduction, update)

    def submit_raw(
        self, collective: int, tensor: int, step: int, reduction: int, root: int, dtype: int, timeout_ms: int,
        count: int, address: int | None, to: Any = None, from_: Any = None, update: Update | None = None,
    ) -> int:  # fmt: skip
        spec = self._tensors[tensor]
        if not spec.dynamic:
            dtype, count = int(spec.dtype), spec.count
        is_read = address is not None and (collective != Collective.BROADCAST or root == self.rank)
        blocks = self.world_size if collective == Collective.REDUCE_SCATTER else 1
        values = _at(address, count * blocks, _TYPES[dtype]) if is_read else torch.empty(0)
        with self.world.changed:
            key = spec.name, step
            operation = self.world.operations.get(key)
            if operation is None:
                operation = self.world.operations[key] = Operation(spec.name, collective, reduction, root)
            operation.inputs[self.rank] = values
            if update is not None:
                operation.updates[self.rank] = Update.from_buffer_copy(update)
            ticket = next(self._next)
            self._tickets[ticket] = operation
            self.world.end_if_complete(operation)
        return ticket

    def submit_device(
        self, collective: int, tensor: int, step: int, reduction: int, root: int, dtype: int, timeout_ms: int,
        count: int, memory: DeviceMemory, to: Any = None, from_: Any = None, update: Update | None = None,
    ) -> int:  # fmt: skip
        """The input is read where it lies, as by a GPU that is in no hurry; so is the result written."""
        if self._tensors[tensor].dynamic:
            assert self.world.levels < 2 or memory.result or memory.result_of_rank, "each rank takes its result"
            step = self._device_steps.get(tensor, 0)
            self._device_steps[tensor] = step + 1
        ticket = self.submit_raw(
            collective, tensor, step, reduction, root, dtype, timeout_ms, count, memory.input or None, to, from_,
            update,
        )  # fmt: skip
        self._devices[ticket] = memory
        return ticket

    def send(self, peer: int, data: int, *, tag: int = 0, nbytes: int = 0, timeout: float | None = None) -> int:
        sent = Letter(self.rank, peer, tag)
        sent.values = _at(data, nbytes, torch.uint8)
        with self.world.changed:
            receive = next((one for one in self.world.receives if one.takes(sent)), None)
            return self._mailed(sent, self.world.sends, sent, receive)

    def receive(self, peer: int, nbytes: int, *, tag: int = 0, timeout: float | None = None) -> int:
        receive = Letter(self.rank, peer, tag)
        with self.world.changed:
            sent = next((one for one in self.world.sends if receive.takes(one)), None)
            return self._mailed(receive, self.world.receives, sent, receive)

    def _mailed(self, own: Letter, waiting: list[Letter], sent: Letter | None, receive: Letter | None) -> int:
        ticket = next(self._next)
        self._tickets[ticket] = own
        waiting.append(own)
        if sent is not None and receive is not None:
            receive.source = sent.rank
            receive.results, sent.results = {receive.rank: sent.values.clone()}, {sent.rank: torch.empty(0)}
            self.world.sends = [one for one in self.world.sends if one is not sent]
            self.world.receives = [one for one in self.world.receives if one is not receive]
            self.world.changed.notify_all()
        return ticket

    def source(self, ticket: int) -> int:
        return self._tickets[ticket].source

    def stream_wait(self, ticket: int, stream: int) -> None:
        if not self._devices[ticket].streams_wait:
            while not self.wait_briefly(ticket, 1000):
                pass
        self.arrive(ticket)

    def arrive(self, ticket: int) -> bool:
        """Copies the result to the GPU if it is there."""
        memory, results = self._devices[ticket], self._tickets[ticket].results
        if results is None:
            return False
        result = results[self.rank]
        if memory.result_of_rank:
            for place, block in zip(memory.result_of_rank, result.chunk(self.world_size)):
                ctypes.memmove(place, block.data_ptr(), block.nbytes)
        elif memory.result:
            ctypes.memmove(memory.result, result.data_ptr(), result.nbytes)
        self._devices[ticket] = memory._replace(result=0, result_of_rank=())
        return True

    def device_release(self, ticket: int) -> None:
        del self._devices[ticket]
        self.release(ticket)

    def wait(self, ticket: int, timeout: float | None = None) -> None:
        end = time.monotonic() + (DEADLINE_S if timeout is None else timeout)
        while not self.test(ticket):
            if time.monotonic() > end:
                raise DeadlineExceededError(f"ticket {ticket} is still in flight after {timeout:g} s")
            time.sleep(0.001)

    def wait_briefly(self, ticket: int, timeout_ms: int) -> bool:
        operation = self._tickets[ticket]
        with self.world.changed:
            self.world.changed.wait_for(
                lambda: operation.results is not None or self.world.failure, timeout_ms / 1000
            )
            if operation.results is None and self.world.failure:
                raise JobFailedError(self.world.failure)
            return operation.results is not None

    def test(self, ticket: int) -> bool:
        ended = self.wait_briefly(ticket, 0)
        if ended and ticket in self._devices and self._devices[ticket].streams_wait and self.streams_can_wait:
            self.arrive(ticket)
        return ended

    def result_address(self, ticket: int) -> tuple[int, int]:
        result = self._tickets[ticket].results[self.rank]
        return result.data_ptr(), result.nbytes

    def result_address_of_rank(self, ticket: int, rank: int) -> tuple[int, int]:
        address, nbytes = self.result_address(ticket)
        return address + rank * (nbytes // self.world_size), nbytes // self.world_size

    def take_briefly(self, ticket: int, timeout_ms: int, address: int, nbytes: int) -> bool:
        if not self.wait_briefly(ticket, timeout_ms):
            return False
        assert nbytes == self.result_address(ticket)[1]
        ctypes.memmove(address, self.result_address(ticket)[0], nbytes)
        self.release(ticket)
        return True

    def release(self, ticket: int) -> None:
        del self._tickets[ticket]


class RepeatedThread:
    update: Update | None = None

    def __init__(self, job: ThreadJob, tensor: int, address: int, reduction: int) -> None:
        self._job, self._tensor, self._address, self._reduction = job, tensor, address, reduction

    def set_reduction(self, reduction: int) -> None:
        self._reduction = reduction

    def submit(self, step: int) -> int:
        is_fetch = self.update is not None and self.update.action == UpdateAction.FETCH
        address = None if is_fetch else self._address
        return self._job.submit_raw(
            Collective.ALL_REDUCE, self._tensor, step, self._reduction, 0, 0, 0, 0, address, update=self.update
        )


class RepeatedThreadUpdate(RepeatedThread):
    def __init__(self, job: ThreadJob, tensor: int, address: int, reduction: int) -> None:
        super().__init__(job, tensor, address, reduction)
        self.update = Update()

    def move(self, memory: braid.Memory) -> None:
        self._address = memory.address


class RepeatedThreadDevice:
    def __init__(self, job: ThreadJob, tensor: int, reduction: int, update: Update | None) -> None:
        self._job, self._tensor, self._reduction, self._update = job, tensor, reduction, update

    def set_reduction(self, reduction: int) -> None:
        self._reduction = reduction

    def submit(self, step: int, input: int, result: int, stream: int) -> int:
        return self._job.submit_device(
            Collective.ALL_REDUCE, self._tensor, step, self._reduction, 0, 0, 0, 0,
            DeviceMemory(input, result, stream), update=self._update,
        )  # fmt: skip


def _at(address: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    nbytes = count * dtype.itemsize
    if not nbytes:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer((ctypes.c_ubyte * nbytes).from_address(address), dtype=dtype)
