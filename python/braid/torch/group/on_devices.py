# SPDX-License-Identifier: Apache-2.0
"""From torch's CUDA tensors to operations of libbraid on the GPU's memory, and back. Nobody waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

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
    outputs: Any, value: Any, entry: Entry | None,
) -> DeviceWork:  # fmt: skip
    """Starts an operation on tensors of one GPU. `outputs` are tensors, or lists of them by rank for an
    all-gather."""
    by_rank = [[each] if isinstance(each, torch.Tensor) else each for each in outputs]
    flat = [tensor for tensors in by_rank for tensor in tensors]
    device = devices.cuda.devices_of([*inputs, *flat])[0]
    with torch.no_grad():
        given = block_of_inputs(inputs)
        taken, places = _room(flat, by_rank, given, is_nested=bool(outputs) and by_rank[0] is outputs[0])
        if not flat and operations.goes_in_two_levels(device):
            taken = _unasked(collective, given)
        operation = operations.start(collective, given, taken, places, device, entry)
    return DeviceWork(value, operation, device)


def _room(
    flat: Sequence[torch.Tensor], by_rank: Sequence[Sequence[torch.Tensor]], given: Block, *,
    is_nested: bool,
) -> tuple[Block | None, list[int]]:  # fmt: skip
    """Where results go: one block, or, for an all-gather into tensors that lie apart, a place for each
    rank."""
    if not flat:
        return None, []
    if is_nested and one_block(flat) is None:
        places = [one_block(tensors) for tensors in by_rank]
        if all(places):
            return Block(flat, None, 0), places
    return block_of_outputs(flat, given), []


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
