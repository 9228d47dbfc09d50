# SPDX-License-Identifier: Apache-2.0
"""Collectives that braid does not carry, handed to the inner gloo group.

gloo works on CPU tensors: CUDA tensors are copied there and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._C._distributed_c10d import AllreduceOptions, ReduceOptions
from torch.distributed import Work

from braid.torch.group.gloo import InnerGloo
from braid.torch.operations import devices
from braid.torch.operations.work import finished

Tensors = Sequence[torch.Tensor]


class FallbackMixin:
    """The part of BraidProcessGroup that is gloo's."""

    _inner: InnerGloo
    _rank: int
    _size: int

    def _reduced_by_gloo(self, tensors: list[torch.Tensor], op: Any) -> Work:
        options = AllreduceOptions()
        options.reduceOp = op
        return self._by_gloo(
            f"all_reduce of {tensors[0].dtype}", tensors, tensors,
            lambda group, to, given: group.allreduce(given, options), in_place=True,
        )  # fmt: skip

    def _reduce_by_gloo(self, tensors: list[torch.Tensor], op: Any, root: int) -> Work:
        options = ReduceOptions()
        options.reduceOp = op
        options.rootRank = root
        return self._by_gloo(
            f"reduce of {tensors[0].dtype}", tensors, tensors,
            lambda group, to, given: group.reduce(given, options), in_place=True,
        )  # fmt: skip

    def _reduce_scattered_by_gloo(
        self, output: torch.Tensor, blocks: list[torch.Tensor], op: Any
    ) -> Work:
        """An all-reduce of everything, of which each rank keeps its block."""
        options = AllreduceOptions()
        options.reduceOp = op
        whole = torch.cat([block.detach().reshape(-1).cpu() for block in blocks])
        self._inner.run(
            f"reduce_scatter of {output.dtype}", [whole],
            lambda group: group.allreduce([whole], options),
        ).wait()  # fmt: skip
        before = self._rank * output.numel()
        if len(blocks) == self._size:  # They may differ in size.
            before = sum(block.numel() for block in blocks[: self._rank])
        mine = whole[before:][: output.numel()]
        output.data.copy_(mine.view(output.shape))
        devices.cuda.hold(devices.cuda.devices_of(output))
        return finished([output])

    def _by_gloo(
        self, what: str, outputs: Tensors, inputs: Tensors,
        start: Callable[[Any, list[torch.Tensor], list[torch.Tensor]], Work], *,
        in_place: bool = False,
    ) -> Work:  # fmt: skip
        """Starts a collective of the inner group; with CUDA tensors it is over on return."""
        outputs, inputs = list(outputs), list(inputs)
        if not devices.cuda.devices_of([*outputs, *inputs]):
            return self._inner.run(what, outputs, lambda group: start(group, outputs, inputs))
        given = [tensor.detach().cpu() for tensor in inputs]
        received = given if in_place else [tensor.detach().cpu() for tensor in outputs]
        self._inner.run(what, received, lambda group: start(group, received, given)).wait()
        for tensor, copy in zip(outputs, received):
            tensor.data.copy_(copy)
        # The caller may wait on another CUDA stream.
        devices.cuda.hold(devices.cuda.devices_of(outputs))
        return finished(outputs)
