# SPDX-License-Identifier: Apache-2.0
"""Collectives in which every rank gives each rank bytes of its own: gather, scatter, all-to-all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.distributed import Work

from braid.torch.group.arguments import carriage_of_copies, listed
from braid.torch.operations import devices
from braid.torch.operations import engine as _engine
from braid.torch.operations.carriage import carriage_of_elements, refuse_sparse
from braid.torch.operations.device_blocks import one_block
from braid.torch.operations.untraced import untraced


class ExchangeMixin:
    """The part of BraidProcessGroup for them."""

    _rank: int
    _size: int

    @untraced
    def gather(
        self, outputs: Any, inputs: Any, opts: Any = None, root: int | None = None,
        timeout: Any = None,
    ) -> Work:  # fmt: skip
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        root = opts.rootRank if root is None else root
        blocks = list(outputs[0]) if outputs and root == self._rank else []
        if root == self._rank:
            self._check_blocks("gather", "outputs", blocks, inputs[0])
        return self._gather_to(root, blocks, inputs, opts, timeout)

    @untraced
    def gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        outputs = [output] if opts.rootRank == self._rank else []
        if outputs and output.numel() != input.numel() * self._size:
            raise ValueError(
                f"gather: the output has {output.numel()} elements, {self._size} ranks with "
                f"{input.numel()} each need {input.numel() * self._size}"
            )
        return self._gather_to(opts.rootRank, outputs, [input], opts)

    gather_into_tensor = gather_single

    def _gather_to(
        self, root: int, outputs: Any, inputs: Any, opts: Any, timeout: Any = None
    ) -> Work:
        dtype, count = carriage_of_copies(inputs)
        work = self._run(
            _engine.GATHER, dtype, count, inputs, outputs, opts, timeout, root=root,
            value=outputs or inputs,
        )  # fmt: skip
        return self._out([work])

    @untraced
    def scatter(
        self, outputs: Any, inputs: Any, opts: Any = None, root: int | None = None,
        timeout: Any = None,
    ) -> Work:  # fmt: skip
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        root = opts.rootRank if root is None else root
        blocks = list(inputs[0]) if inputs and root == self._rank else []
        if root == self._rank:
            self._check_blocks("scatter", "inputs", blocks, outputs[0])
        dtype, count = carriage_of_copies(outputs)
        work = self._run(
            _engine.SCATTER, dtype, count, blocks, listed(outputs), opts, timeout, root=root
        )
        return self._out([work])

    def _check_blocks(
        self, what: str, side: str, blocks: Sequence[torch.Tensor], own: torch.Tensor
    ) -> None:
        sizes = [block.numel() for block in blocks]
        if sizes != [own.numel()] * self._size or any(b.dtype != own.dtype for b in blocks):
            raise ValueError(
                f"{what}: rank {self._rank} is the root and needs {side} of {self._size} ranks "
                f"with {own.numel()} elements of {own.dtype} each; given were "
                f"{[f'{block.numel()} of {block.dtype}' for block in blocks]}"
            )

    @untraced
    def all_to_all_single(
        self, output: torch.Tensor, input: torch.Tensor, output_split_sizes: list[int],
        input_split_sizes: list[int], opts: Any = None, timeout: Any = None,
    ) -> Work:  # fmt: skip
        """The splits are numbers of rows; none: as many for each rank."""
        refuse_sparse([output, input])
        to = self._elements("input", input, input_split_sizes)
        from_ = self._elements("output", output, output_split_sizes)
        blocks = input.detach().reshape(-1).split(to)
        outputs = output.detach().view(-1).split(from_) if output.is_contiguous() else [output]
        return self._all_to_all(outputs, blocks, from_, to, opts, timeout, [output])

    alltoall_base = all_to_all_single

    @untraced
    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> Work:
        outputs, inputs = list(outputs), list(inputs)
        refuse_sparse([*outputs, *inputs])
        if len(outputs) != self._size or len(inputs) != self._size:
            raise ValueError(
                f"all-to-all: {len(outputs)} outputs and {len(inputs)} inputs for "
                f"{self._size} ranks"
            )
        to, from_ = ([block.numel() for block in blocks] for blocks in (inputs, outputs))
        return self._all_to_all(outputs, inputs, from_, to, opts, timeout, outputs)

    def _all_to_all(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], from_: list[int],
        to: list[int], opts: Any, timeout: Any, value: list[torch.Tensor],
    ) -> Work:  # fmt: skip
        """`inputs` are by rank, and `outputs` unless they are one tensor of all."""
        own = self._rank
        if to[own] != from_[own]:
            raise ValueError(
                f"all-to-all: rank {own} gives itself {to[own]} elements and expects {from_[own]}"
            )
        dtype, per_element = carriage_of_elements(inputs[0].dtype)
        copy_own = None
        if len(outputs) == self._size and not (
            _share_memory(outputs, inputs) or _lie_on_device(outputs, inputs)
        ):
            # What stays with this rank need not go through the daemon.
            copy_own = _engine.Once(_copy(outputs[own], inputs[own]))
            outputs, inputs = ([*b[:own], *b[own + 1 :]] for b in (outputs, inputs))
            to, from_ = ([*n[:own], 0, *n[own + 1 :]] for n in (to, from_))
        # Also where all sizes are equal here: others may know only that theirs are not.
        splits = ([n * per_element for n in to], [n * per_element for n in from_])
        work = self._run(
            _engine.ALL_TO_ALL, dtype, 0, inputs, outputs, opts, timeout, splits=splits,
            meanwhile=copy_own, value=value,
        )  # fmt: skip
        return self._out([work])

    def _elements(self, side: str, tensor: torch.Tensor, rows: Sequence[int]) -> list[int]:
        if not rows:
            if tensor.size(0) % self._size != 0:
                raise ValueError(
                    f"all-to-all: the {side} has {tensor.size(0)} rows, which {self._size} ranks "
                    f"cannot share equally; give {side}_split_sizes"
                )
            rows = [tensor.size(0) // self._size] * self._size
        if len(rows) != self._size or sum(rows) != tensor.size(0) or min(rows) < 0:
            raise ValueError(
                f"all-to-all: {side}_split_sizes are {list(rows)}; right are {self._size} numbers "
                f"that add up to the {tensor.size(0)} rows of the {side}"
            )
        per_row = prod(tensor.shape[1:])
        return [count * per_row for count in rows]


def _copy(to: torch.Tensor, given: torch.Tensor) -> Callable[[], None]:
    given = given.detach()

    def copy() -> None:
        to.data.copy_(given.reshape(to.shape))

    return copy


def _lie_on_device(*sides: Sequence[torch.Tensor]) -> bool:
    """Whether both sides lie on a GPU as they are sent: without one of them they would have to be
    copied together."""
    return all(
        devices.cuda.holds(tensors[0]) and one_block(tensors) is not None for tensors in sides
    )


def _share_memory(outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> bool:
    """Perhaps: they may lie apart in what they share."""
    places = {tensor.untyped_storage().data_ptr() for tensor in outputs}
    return any(tensor.untyped_storage().data_ptr() in places for tensor in inputs)
