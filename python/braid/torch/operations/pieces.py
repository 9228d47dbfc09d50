# SPDX-License-Identifier: Apache-2.0
"""How large operations on tensors of the CPU are cut into operations that the daemon runs one after the
other: while the network carries one piece, the next one is copied into the arena, and the one before
out of the result memory.

Each piece takes the same elements of every rank's block, so the pieces' results, put side by side block
by block, are the operation's (as libbraid cuts what lies on a GPU, see pieces.h there).
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from ctypes import memmove
from itertools import accumulate
from typing import NamedTuple

import torch

from braid import Collective, DType

# What a piece has of a rank's input or result, whichever is larger, at most. It is one unit of the daemon
# (collective.unit_bytes), and among up to 8 nodes its segments are cut into chunks that fit two packets of
# 64 KiB with their headers: chunks of exactly transport.chunk_bytes need a third one, and a quarter more time.
PIECE_BYTES = 8_000_000
# If blocks have less of a piece than that, it takes longer to ask for the copies than to copy.
_ROW_BYTES_MIN = 256 << 10
# From here on pieces grow. Each has a ticket, of which a job has 8192.
PIECES_MAX = 16
# Sizes are multiples of so many elements, so that pieces begin where copies are fast.
_ELEMENTS_MULTIPLE = 16

_INPUT_BLOCKS = (Collective.REDUCE_SCATTER, Collective.SCATTER)
_RESULT_BLOCKS = (Collective.ALL_GATHER, Collective.GATHER)
_IN_ONE_PIECE = (Collective.BARRIER, Collective.ALL_TO_ALL)


class Rows(NamedTuple):
    """The same part of each block of a tensor: `rows` times `width` bytes, `pitch` bytes apart, the first
    one `offset` bytes after the tensor's begin. In the daemon's memory they lie side by side."""

    rows: int
    width: int
    pitch: int
    offset: int

    @property
    def nbytes(self) -> int:
        return self.rows * self.width


class Piece(NamedTuple):
    count: int  # as braid_operation has it
    input: Rows
    result: Rows


class Cuts:
    """How the operations of one job are cut. It follows from what all ranks know.

    Pieces are about as large as each other, and their size says how many there are. So operations
    of different counts do not begin with the same pieces, and ranks that disagree are told at once.

    All-to-alls go as they are, for only two ranks know how large their parts are.
    """

    def __init__(self, world_size: int, nodes: int) -> None:
        """`nodes` is the number of a job's nodes, or 0: perhaps more than one."""
        self._world_size = world_size
        # The most elements of one piece, by collective and dtype.
        self._largest = [
            [
                _fitting(dtype.itemsize, max(self._blocks(collective)))
                if nodes != 1 and collective not in _IN_ONE_PIECE
                else sys.maxsize
                for dtype in DType
            ]
            for collective in Collective
        ]

    def pieces_of(self, collective: int, dtype: int, count: int) -> Sequence[Piece]:
        """For `count` elements in each block; none: the operation goes as it is."""
        largest = self._largest[collective][dtype]
        if count <= largest:
            return ()
        number = min(-(-count // largest), PIECES_MAX)
        multiples = -(-count // (number * _ELEMENTS_MULTIPLE))
        multiples += (number - multiples) % (PIECES_MAX + 1)
        begins = range(0, count, multiples * _ELEMENTS_MULTIPLE)
        itemsize = DType(dtype).itemsize
        in_blocks, result_blocks = self._blocks(collective)
        pieces = []
        for begin, end in zip(begins, [*begins[1:], count]):
            width, pitch, offset = (n * itemsize for n in (end - begin, count, begin))
            input_rows = Rows(in_blocks, width, pitch, offset)
            pieces.append(Piece(end - begin, input_rows, Rows(result_blocks, width, pitch, offset)))
        return pieces

    def _blocks(self, collective: int) -> tuple[int, int]:
        """How many blocks a rank's input has, and its result."""
        size = self._world_size
        return (
            size if collective in _INPUT_BLOCKS else 1,
            size if collective in _RESULT_BLOCKS else 1,
        )


def _fitting(itemsize: int, blocks: int) -> int:
    return max(PIECE_BYTES // blocks, _ROW_BYTES_MIN) // itemsize


class Joined:
    """Tensors of the CPU, one after the other, as one range of bytes. It holds the tensors."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        """They are contiguous."""
        self._tensors = tensors
        self._addresses = [tensor.data_ptr() for tensor in tensors]
        self._begins = [0, *accumulate(tensor.nbytes for tensor in tensors)]

    def take_out(self, rows: Rows, memory: int) -> None:
        """Copies rows to memory, where they lie side by side."""
        for row in range(rows.rows):
            self._copy(rows.offset + row * rows.pitch, rows.width, memory + row * rows.width, _read)

    def put_in(self, rows: Rows, memory_of: Callable[[int], int]) -> None:
        """Copies rows from where each of them lies."""
        for row in range(rows.rows):
            self._copy(rows.offset + row * rows.pitch, rows.width, memory_of(row), _write)

    def _copy(
        self, begin: int, nbytes: int, memory: int, copy: Callable[[int, int, int], None]
    ) -> None:
        which = bisect_right(self._begins, begin) - 1
        while nbytes:
            within = begin - self._begins[which]
            some = min(nbytes, self._begins[which + 1] - begin)
            copy(self._addresses[which] + within, memory, some)
            begin, memory, nbytes = begin + some, memory + some, nbytes - some
            which += 1


def _read(of_tensor: int, memory: int, nbytes: int) -> None:
    memmove(memory, of_tensor, nbytes)


def _write(of_tensor: int, memory: int, nbytes: int) -> None:
    memmove(of_tensor, memory, nbytes)
