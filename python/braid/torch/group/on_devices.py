# SPDX-License-Identifier: Apache-2.0
"""From torch's CUDA tensors to operations of libbraid on the GPU's memory, and back. Nobody waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from braid.torch.group.arguments import flattened
from braid.torch.operations import devices
from braid.torch.operations import engine as _engine
from braid.torch.operations.device_blocks import (
    Block,
    block_of_inputs,
    block_of_outputs,
    one_block,
)
from braid.torch.operations.device_operations import Collective, DeviceOperations
from braid.torch.operations.device_work import DeviceWork
from braid.torch.operations.flight_record import Entry


def start_on_device(
    operations: DeviceOperations, collective: Collective, inputs: Sequence[torch.Tensor],
    outputs: Any, device: torch.device, value: Any, entry: Entry | None,
) -> DeviceWork:  # fmt: skip
    """Starts an operation on tensors of that GPU. `outputs` are tensors, or lists of them by rank for
    an all-gather."""
    given = block_of_inputs(inputs)
    taken: Block | None = None
    places: Sequence[int] = ()
    if outputs:
        taken, places = _room(outputs, given)
    elif operations.goes_in_two_levels(device):
        taken = _unasked(collective, given)
    operation = operations.start(collective, given, taken, places, device, entry)
    return DeviceWork(value, operation, device)


def _room(outputs: Any, given: Block) -> tuple[Block, Sequence[int]]:
    """Where results go: one block, or, for an all-gather into tensors that lie apart, a place for each
    rank."""
    flat = flattened(outputs)
    if flat is not outputs and one_block(flat) is None:
        places = [one_block(tensors) for tensors in outputs]
        if all(places):
            return Block(flat, None, 0), places
    return block_of_outputs(flat, given), ()


def _unasked(collective: Collective, given: Block) -> Block | None:
    """For a result that this rank has no use for: in two levels each rank takes it, for the others of
    its node."""
    if collective.kind == _engine.BROADCAST:
        return Block(given.tensors, None, given.address)
    if collective.kind != _engine.ALL_REDUCE:
        return None
    nbytes = sum(tensor.nbytes for tensor in given.tensors)
    room = devices.cuda.vector(nbytes, torch.uint8, devices.cuda.device_of(given.tensors[0]))
    return Block([room], None, room.data_ptr())
