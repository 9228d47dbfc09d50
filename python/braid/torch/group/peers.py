# SPDX-License-Identifier: Apache-2.0
"""Sends and receives between two ranks: torch's isend, irecv and what is made of them."""

from __future__ import annotations

from typing import Any

import torch

from braid import ANY_RANK
from braid.torch.group.arguments import packable
from braid.torch.group.unheard import refuse_nans
from braid.torch.operations import devices
from braid.torch.operations.carriage import refuse_sparse
from braid.torch.operations.engine import Engine
from braid.torch.operations.messages import Channel, MessageWork
from braid.torch.operations.packing import pack, unpack_whole
from braid.torch.operations.untraced import untraced
from braid.torch.operations.work import CopyBackWork


class PeerMixin:
    """The part of BraidProcessGroup that is about one other rank. Every type goes, as bytes.

    Tensors on a GPU are copied to the CPU in send(), and from there in the wait() of a receive.
    """

    engine: Engine
    _rank: int
    checks_nans: bool
    _out: Any

    @untraced
    def send(self, tensors: list[torch.Tensor], dst: int, tag: int = 0) -> Any:
        _check(tensors, tag)
        if self.checks_nans:
            refuse_nans(tensors, "send", self._rank)
        messages = self.engine.messages
        work = MessageWork(tensors, f"send of rank {self._rank} to rank {dst}", messages)
        memory = pack(self.engine.arena, [packable(tensor) for tensor in tensors])
        messages.send(dst, tag, sum(tensor.nbytes for tensor in tensors), memory, work)
        return self._out([work])

    @untraced
    def recv(self, tensors: list[torch.Tensor], src: int, tag: int = 0) -> Any:
        return self._out([self._receive(tensors, src, tag, f"rank {src}")])

    @untraced
    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Any:
        return self._out([self._receive(tensors, ANY_RANK, tag, "any rank")])

    recvAnysource = recv_anysource

    def _receive(self, tensors: list[torch.Tensor], source: int, tag: int, named: str) -> Any:
        _check(tensors, tag)
        is_on_gpu = bool(devices.cuda.devices_of(tensors))
        into = [torch.empty_like(each, device="cpu") for each in tensors] if is_on_gpu else tensors
        messages = self.engine.messages
        channel = Channel(source, tag, sum(tensor.nbytes for tensor in tensors))
        what = f"receive of rank {self._rank} from {named}"
        work = MessageWork(tensors, what, messages, channel, unpack_whole(into))
        messages.receive(work)
        return CopyBackWork(work, tensors, into) if is_on_gpu else work


def _check(tensors: list[torch.Tensor], tag: int) -> None:
    refuse_sparse(tensors)
    if tag < 0:
        raise ValueError(f"the tag of a send or a receive is {tag}; it must not be negative")
