# SPDX-License-Identifier: Apache-2.0
"""Homes of tensors: the rank that computes a tensor for all ranks."""

from __future__ import annotations

import io
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

import braid
from braid.torch.group.training_group import braid_group
from braid.torch.operations.placed_work import PlacedWork

# What may be on its way at once, at least one tensor.
_IN_FLIGHT_BYTES_MAX = 256 << 20
# A rate for costs that only count beside each other.
_FLOPS_PER_SECOND = 1e12


def newton_schulz_seconds(shape: tuple[int, ...]) -> float:
    """What Muon's step costs: five rounds of Newton–Schulz on a matrix, and a look at each element
    of anything else."""
    if len(shape) != 2:
        return torch.Size(shape).numel() / _FLOPS_PER_SECOND
    less, more = sorted(shape)
    return 5 * (4 * less * less * more + 2 * less**3) / _FLOPS_PER_SECOND


class Homes:
    """Gives each tensor a home, so that all ranks compute for about the same time (braid.place).

        homes = braid.torch.Homes(dict(model.named_parameters()), cost=seconds_of)
        homes.gather_to_owner(gradients)      # at home: the mean of all ranks'
        homes.spread(weights, compute)        # compute("layer1.weight") is called at its home

    Made and used on all ranks of the group alike, with the same names. Where torch.distributed is
    not initialized there is one rank, and every tensor is at home.
    """

    def __init__(
        self,
        tensors: Mapping[str, torch.Tensor],
        cost: Callable[[tuple[int, ...]], float] = newton_schulz_seconds,
        *,
        process_group: Any = None,
        work: str = "results",
    ) -> None:
        """`cost` says how long a rank computes with a tensor of a shape, in seconds; only what
        costs are beside each other counts. All ranks must get the same. `work` is the name of what
        homes compute in `braidctl trace`, `braidctl explain` and metrics."""
        self._group = _group_of(process_group)
        self._rank = 0 if self._group is None else self._group.rank()
        self._work = PlacedWork(None if self._group is None else self._group.engine.job, work)
        names = list(tensors)
        items = [
            braid.PlacedItem(name, tensor.shape or (1,), cost(tuple(tensor.shape)), tensor.nbytes)
            for name, tensor in tensors.items()
        ]
        ranks = 1 if self._group is None else self._group.size()
        placement = braid.place(items, ranks) if items else None
        # Without costs of the link nothing is gained where everybody computes a tensor.
        owners = placement.owners if placement is not None else []
        self._owners = {name: owner or 0 for name, owner in zip(names, owners)}
        self._order = [names[place] for place in placement.order] if placement is not None else []
        self._order += [name for name in names if name not in set(self._order)]

    def owner_of(self, name: str) -> int:
        """The rank in the group."""
        return self._owners[name]

    def is_own(self, name: str) -> bool:
        return self._owners[name] == self._rank

    @torch.no_grad()
    def gather_to_owner(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """At home each tensor becomes the mean of all ranks', in place; elsewhere it stays."""
        if self._group is not None:

            def reduce(name: str) -> Any:
                return self._group.reduce([tensors[name]], ReduceOp.AVG, root=self._owners[name])

            self._run(tensors, reduce, lambda name, begun: begun.wait())

    @torch.no_grad()
    def spread(
        self, tensors: Mapping[str, torch.Tensor], compute: Callable[[str], None] | None = None
    ) -> None:
        """All ranks get what each tensor is at its home, in place. `compute` is called there with
        the tensor's name before; the tensor is on its way while the next one is computed."""

        # On a GPU nobody waits here, and so nobody knows how long it takes.
        is_seen = all(tensor.device.type == "cpu" for tensor in tensors.values())

        def send(name: str) -> Any:
            if compute is not None and self.is_own(name):
                begin_ns = time.monotonic_ns()
                compute(name)
                self._work.computed(name, self._rank, begin_ns)
            if self._group is None:
                return None
            return self._group.broadcast([tensors[name].detach()], root=self._owners[name])

        def take(name: str, begun: Any) -> None:
            begin_ns = time.monotonic_ns()
            if begun is not None:
                begun.wait()
            if not self.is_own(name):
                self._work.waited(name, self._owners[name], begin_ns)

        self._work.begin_update()
        self._run(tensors, send, take)
        if compute is not None and is_seen:
            self._work.end_update()

    def spread_object(self, name: str, value: Any) -> Any:
        """What `value` is at the tensor's home, as torch.save can write and torch.load can safely
        read it; tensors come to the CPU."""
        if self._group is None:
            return value
        owner = self._owners[name]
        data = torch.empty(0, dtype=torch.uint8)
        if self.is_own(name):
            file = io.BytesIO()
            torch.save(value, file)
            data = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
        count = torch.tensor([data.numel()])
        self._group.broadcast([count], root=owner).wait()
        if not self.is_own(name):
            data = torch.empty(int(count), dtype=torch.uint8)
        self._group.broadcast([data], root=owner).wait()
        if self.is_own(name):
            return value
        return torch.load(io.BytesIO(data.numpy().tobytes()), map_location="cpu", weights_only=True)

    def _run(
        self, tensors: Mapping[str, torch.Tensor], begin: Callable[[str], Any],
        end: Callable[[str, Any], None],
    ) -> None:  # fmt: skip
        """Begins and ends an operation for each tensor, in the order that all ranks have."""
        if unknown := sorted(set(tensors) - set(self._owners)):
            raise ValueError(f"these tensors have no home: {', '.join(unknown[:4])}")
        on_their_way: deque[tuple[str, Any]] = deque()
        nbytes = 0
        for name in self._order:
            if name not in tensors:
                continue
            while on_their_way and nbytes + tensors[name].nbytes > _IN_FLIGHT_BYTES_MAX:
                first, begun = on_their_way.popleft()
                end(first, begun)
                nbytes -= tensors[first].nbytes
            on_their_way.append((name, begin(name)))
            nbytes += tensors[name].nbytes
        while on_their_way:
            end(*on_their_way.popleft())


def _group_of(process_group: Any) -> Any:
    """None: there is one rank, which needs no group."""
    if process_group is None:
        if not dist.is_initialized() or dist.get_world_size() == 1:
            return None
    group = braid_group(process_group, "Homes")
    return group if group.size() > 1 else None
