# SPDX-License-Identifier: Apache-2.0
"""How operations on tensors of the CPU are cut into pieces, and how pieces come out of tensors and back."""

from __future__ import annotations

import itertools
import re

import pytest
from cluster_runs import SHAPES, run

torch = pytest.importorskip("torch")

from braid import Collective, DType  # noqa: E402
from braid.torch.operations.pieces import PIECE_BYTES, PIECES_MAX, Cuts, Joined, Rows  # noqa: E402

KILLED = 128 + 9
FLOATS = PIECE_BYTES // 4
CUT = [Collective(number) for number in range(8) if Collective(number).name not in ("BARRIER", "ALL_TO_ALL")]


def counts_of(pieces):
    return [piece.count for piece in pieces]


def covered(rows_of_pieces, blocks, block_bytes):
    """Whether rows take each byte of each block once, in order."""
    found = []
    for rows in rows_of_pieces:
        assert (rows.rows, rows.pitch) == (blocks, block_bytes)
        found.append((rows.offset, rows.offset + rows.width))
    begins, ends = zip(*found)
    return begins == (0, *ends[:-1]) and ends[-1] == block_bytes


@pytest.mark.parametrize("collective", CUT)
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("world_size", [2, 3, 8, 1000])
def test_pieces_cover_each_block_once(collective, dtype, world_size):
    cuts = Cuts(world_size, nodes=2)
    in_blocks = world_size if collective.name in ("REDUCE_SCATTER", "SCATTER") else 1
    result_blocks = world_size if collective.name in ("ALL_GATHER", "GATHER") else 1
    for nbytes in (PIECE_BYTES + 8, 3 * PIECE_BYTES, 1_000_000_008):
        count = nbytes // dtype.itemsize
        pieces = cuts.pieces_of(collective, dtype, count)
        assert 2 <= len(pieces) <= PIECES_MAX
        assert sum(counts_of(pieces)) == count
        assert covered([piece.input for piece in pieces], in_blocks, count * dtype.itemsize)
        assert covered([piece.result for piece in pieces], result_blocks, count * dtype.itemsize)
        assert all(piece.input.width == piece.count * dtype.itemsize for piece in pieces)


def test_what_fits_a_piece_goes_as_it_is():
    cuts = Cuts(4, nodes=4)
    assert not cuts.pieces_of(Collective.ALL_REDUCE, DType.FLOAT32, FLOATS)
    assert len(cuts.pieces_of(Collective.ALL_REDUCE, DType.FLOAT32, FLOATS + 1)) == 2
    # By all blocks of a rank together.
    assert not cuts.pieces_of(Collective.GATHER, DType.FLOAT32, FLOATS // 4)
    assert len(cuts.pieces_of(Collective.GATHER, DType.FLOAT32, FLOATS // 4 + 1)) == 2


@pytest.mark.parametrize("collective", [Collective.BARRIER, Collective.ALL_TO_ALL])
def test_all_to_alls_go_as_they_are(collective):
    assert not Cuts(4, nodes=4).pieces_of(collective, DType.FLOAT32, 100 * FLOATS)


def test_nothing_is_cut_within_one_node():
    assert not Cuts(4, nodes=1).pieces_of(Collective.ALL_REDUCE, DType.FLOAT32, 100 * FLOATS)
    # An older daemon does not say.
    assert Cuts(4, nodes=0).pieces_of(Collective.ALL_REDUCE, DType.FLOAT32, 100 * FLOATS)


def test_different_counts_never_begin_with_the_same_pieces():
    """Else ranks that disagree about a count would agree about the first pieces, and take the later ones for another
    operation's."""
    cuts = Cuts(4, nodes=4)
    near = [n * FLOATS // 2 + more for n in range(2, 48) for more in (-17, -16, -1, 0, 1, 16, 17, 272)]
    of_count = {n: tuple(counts_of(cuts.pieces_of(Collective.ALL_REDUCE, DType.FLOAT32, n))) for n in near}
    cut = {n: pieces for n, pieces in of_count.items() if pieces}
    assert len(cut) > 300
    for (_, one), (_, other) in itertools.combinations(cut.items(), 2):
        shorter = min(len(one), len(other))
        assert one[:shorter] != other[:shorter]


def test_rows_come_out_of_several_tensors_and_go_back():
    given = torch.arange(60, dtype=torch.uint8)
    tensors = [given[:7].clone(), given[7:7].clone(), given[7:31].clone(), given[31:].clone()]
    rows = Rows(rows=3, width=6, pitch=20, offset=5)  # bytes 5 to 10, 25 to 30, 45 to 50
    memory = torch.zeros(18, dtype=torch.uint8)
    Joined(tensors).take_out(rows, memory.data_ptr())
    expected = [*range(5, 11), *range(25, 31), *range(45, 51)]
    assert memory.tolist() == expected

    there = [torch.zeros_like(tensor) for tensor in tensors]
    Joined(there).put_in(rows, lambda row: memory.data_ptr() + row * 6)
    assert torch.cat(there).tolist() == [n if n in expected else 0 for n in range(60)]


@pytest.mark.parametrize(("nodes", "ranks_per_node"), SHAPES)
def test_large_collectives_are_cut_and_give_what_uncut_ones_give(nodes, ranks_per_node):
    results = run("pieces.py", nodes=nodes, ranks_per_node=ranks_per_node).expect(4)
    for result in results:
        assert result["compared"] > 50
        assert result["submitted"] > result["operations"] + 50
        # int64: pieces of so many bytes have half as many elements.
        assert result["largest"] <= FLOATS * 2
    assert len({digest for result in results for digest in result["digests"]}) == 1
    # All ranks cut alike.
    assert len({(result["operations"], result["submitted"]) for result in results}) == 1


def test_a_rank_that_ends_between_pieces_is_named_with_the_whole_operation():
    done = run("failure.py", "in pieces", nodes=3, ranks_per_node=1)
    assert done.exit_code == KILLED, done.output
    assert sorted(done.results) == [0, 2], done.output
    for result in done.results.values():
        assert re.search(r"\brank 1\b", result["text"]), result
        assert re.search(r"\(piece [1-3] of 3 of the all-reduce of 5000000 elements\)$", result["text"]), result
        assert re.search(r"\brank 1\b", result["again"]), result
        assert "DistBackendError" in result["kinds"]
