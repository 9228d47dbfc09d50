# SPDX-License-Identifier: Apache-2.0
"""Ranks that are threads of one process, and a job among them that updates weights with torch's own optimizers.

An independent reference for what daemons do with tensors that have state slots: one owner keeps everything, in
torch.optim, and knows nothing of shards, chunks or codecs. What is tested against it are the trainers' equations.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

import braid
from braid import Collective, Optimizer, StateBits, Update, UpdateAction, UpdateFlag
from braid._devices import DeviceMemory
from braid.errors import DeadlineExceededError, InvalidArgumentError, JobFailedError, ResourceExhaustedError

DEADLINE_S = 120
_LOOK_S = 0.3  # Nobody comes within this time who is not to come.
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
            self.results = [each.clone() for each in _reduced(inputs, self.reduction).chunk(world.size)]
            return
        elif self.collective == Collective.BARRIER:
            result = torch.empty(0)
        else:
            result = _reduced(inputs, self.reduction)
        self.results = [result.clone() for _ in inputs]


class Owner:
    """The owner of all of one tensor."""

    def __init__(self, count: int, dtype: torch.dtype, slots: int) -> None:
        self.dtype = dtype
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        self.slots = [torch.zeros(count, dtype=wide) for _ in range(slots)]

    def act(self, update: Update, inputs: list[torch.Tensor], reduction: int) -> torch.Tensor:
        if update.action == UpdateAction.LOAD:
            self._load(update, inputs[0])
        elif update.action != UpdateAction.FETCH:
            kept = [slot.clone() for slot in self.slots] if update.action == UpdateAction.ESTIMATE else None
            self._apply(update, _reduced([each.to(self.slots[0].dtype) for each in inputs], reduction))
            if update.action == UpdateAction.PUSH:
                return torch.empty(0, dtype=self.dtype)
            weights = self.slots[0]
            if kept is not None:
                self.slots = kept
            if update.flags & UpdateFlag.PULL_BFLOAT16:
                weights = weights.to(torch.bfloat16)
            return weights.to(self.dtype)
        return self._values(update)

    def _load(self, update: Update, values: torch.Tensor) -> None:
        slot = self.slots[update.slot]
        if update.bits == StateBits.ROUNDED:
            slot.copy_(values)
            return
        bits = slot.view(torch.int32)
        given = values.view(torch.int16).int()
        if update.bits == StateBits.HIGH:
            bits.copy_(given << 16 | bits & 0xFFFF)
        else:
            bits.copy_(bits & ~0xFFFF | given & 0xFFFF)

    def _values(self, update: Update) -> torch.Tensor:
        slot = self.slots[update.slot]
        if update.bits == StateBits.ROUNDED:
            return slot.to(self.dtype)
        shift = 16 if update.bits == StateBits.HIGH else 0
        return (slot.view(torch.int32) >> shift).to(torch.int16).view(self.dtype)

    def _apply(self, update: Update, gradient: torch.Tensor) -> None:
        weights = self.slots[0]
        weights.requires_grad_(False)
        parameter = torch.nn.Parameter(weights)
        parameter.grad = gradient
        betas = update.momentum, update.second_momentum
        decoupled = bool(update.flags & UpdateFlag.DECOUPLED_DECAY)
        common = {"lr": update.learning_rate, "weight_decay": update.weight_decay}
        if update.optimizer == Optimizer.LION:
            assert decoupled
            self._lion(update, gradient)
            return
        if update.optimizer == Optimizer.SGD:
            optimizer: Any = torch.optim.SGD(
                [parameter], momentum=update.momentum, dampening=update.dampening,
                nesterov=bool(update.flags & UpdateFlag.NESTEROV), foreach=False, **common,
            )  # fmt: skip
            if update.count > 1 and update.momentum:
                optimizer.state[parameter]["momentum_buffer"] = self.slots[1]
        else:
            kind = torch.optim.AdamW if decoupled else torch.optim.Adam
            optimizer = kind([parameter], betas=betas, eps=update.epsilon, foreach=False, **common)
            optimizer.state[parameter] = {
                "step": torch.tensor(float(update.count - 1)), "exp_avg": self.slots[1], "exp_avg_sq": self.slots[2],
            }  # fmt: skip
        optimizer.step()
        buffer = optimizer.state[parameter].get("momentum_buffer")
        if buffer is not None:
            self.slots[1].copy_(buffer)

    def _lion(self, update: Update, gradient: torch.Tensor) -> None:
        weights, momentum = self.slots
        weights.mul_(1 - update.learning_rate * update.weight_decay)
        weights.sub_(update.learning_rate * torch.sign(momentum.lerp(gradient, 1 - update.momentum)))
        momentum.lerp_(gradient, 1 - update.second_momentum)


class ThreadJob:
    """braid.Job, as far as process groups and optimizers use it."""

    socket_path = None
    master_address = "127.0.0.1"
    is_open = True
    arena_is_full = False
    streams_can_wait = True  # Otherwise threads wait, and queue the copies of results.

    def __init__(self, world: World, rank: int, name: str) -> None:
        self.world, self.rank, self.name, self.world_size = world, rank, name, world.size
        self._tensors: dict[int, braid.TensorSpec] = {}
        self._buffers: dict[int, Any] = {}
        self._tickets: dict[int, Operation] = {}
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


class Blocked:
    """A training whose last round does not end, and whose next step has begun on a thread; on all ranks."""

    def __init__(self, group: Any, training: Any, world: World, number: int) -> None:
        """`training.step(number)` does not wait for its own round, and the next one waits for that."""
        self._group, self._world, self._tensors = group, world, len(training.parameters)
        group.barrier().wait()
        world.hold(True)
        training.step(number)
        self._thread = threading.Thread(target=training.step, args=(number + 1,), daemon=True)
        self._thread.start()
        self._thread.join(_LOOK_S)
        assert self._thread.is_alive()
        group.barrier().wait()

    def rounds(self) -> int:
        """That are on their way: all ranks have submitted them."""
        with self._world.changed:
            operations = self._world.operations.values()
            on_their_way = [o for o in operations if o.updates and o.results is None]
            return sum(len(o.inputs) == self._world.size for o in on_their_way) // self._tensors

    def wait_for_rounds(self, count: int) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.rounds() < count and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.rounds() == count

    def end(self) -> None:
        self._group.barrier().wait()
        self._world.hold(False)
        self._thread.join()


def run_ranks(size: int, work: Callable[[Any, World], Any]) -> list[Any]:
    """`work(group, world)` on so many ranks at once; what each returned. Raises the first error."""
    from braid.torch.group.process_group import BraidProcessGroup

    world, store = World(size), dist.HashStore()
    results: list[Any] = [None] * size
    errors: list[BaseException | None] = [None] * size

    def run(rank: int) -> None:
        job = ThreadJob(world, rank, "threads")
        group = BraidProcessGroup(store, rank, size, timedelta(seconds=DEADLINE_S), job)
        try:
            results[rank] = work(group, world)
        except BaseException as error:
            errors[rank] = error
            world.fail(f"rank {rank} has failed: {error}")
        finally:
            group.shutdown()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "a rank hangs"
    # What follows from another rank's failure tells less.
    for error in sorted(filter(None, errors), key=lambda error: "has failed" in str(error)):
        raise error
    return results


def _reduced(inputs: list[torch.Tensor], reduction: int) -> torch.Tensor:
    stacked = torch.stack(inputs)
    if reduction == braid.Reduction.MAX:
        return stacked.amax(0)
    if reduction == braid.Reduction.MIN:
        return stacked.amin(0)
    total = stacked.sum(0, dtype=stacked.dtype)
    return total / len(inputs) if reduction == braid.Reduction.AVERAGE else total


def _at(address: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    nbytes = count * dtype.itemsize
    if not nbytes:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer((ctypes.c_ubyte * nbytes).from_address(address), dtype=dtype)
