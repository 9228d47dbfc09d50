# SPDX-License-Identifier: Apache-2.0
"""Neighbouring gradients as one planned tensor: how they are cut, where they lie, and what a step then calls."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import pytest
from cluster_runs import once, run

torch = pytest.importorskip("torch")

MANY, SMALL = "3500x16", "160x128"


def gradients(*sizes: int, codecs: tuple[str, ...] = (), shapes: tuple[Any, ...] = ()) -> list[Any]:
    from braid.torch.ddp.planned_tensors import Gradient

    return [
        Gradient(
            f"g{place}", torch.empty(size), torch.float32, codecs[place] if codecs else "",
            shapes[place] if shapes else None,
        )
        for place, size in enumerate(sizes)
    ]  # fmt: skip


def cut(bucket: list[Any], bytes_min: int) -> list[list[str]]:
    from braid.torch.ddp.planned_tensors import members_of

    return [[gradient.name for gradient in member.gradients] for member in members_of(bucket, bytes_min)]


def tensors_of(*buckets: list[Any], bytes_min: int) -> list[Any]:
    from braid.torch.ddp.planned_tensors import PlannedTensor, members_of

    members = [member for bucket in buckets for member in members_of(bucket, bytes_min)]
    places = places_of([member.form for member in members])
    return [PlannedTensor(member, place.view, None) for member, place in zip(members, places)]


def places_of(forms: list[Any]) -> list[Any]:
    from braid import Memory
    from braid.torch.planned.tensors import lay_out

    def take(nbytes: int) -> Any:
        memory.extend(bytes(nbytes))
        return Memory(ctypes.addressof(ctypes.c_char.from_buffer(memory)), nbytes)

    memory = bytearray()
    return lay_out(forms, take)


def parameters_of(bucket: list[Any]) -> list[Any]:
    return [gradient.parameter for gradient in bucket]


def test_neighbours_make_up_a_tensor_until_it_is_large_enough():
    bucket = gradients(10, 10, 10, 100, 5, 30, 1)
    assert cut(bucket, 80) == [["g0", "g1"], ["g2", "g3"], ["g4", "g5"], ["g6"]]


def test_with_no_smallest_size_each_gradient_is_a_tensor():
    assert cut(gradients(10, 1, 0, 3), 0) == [["g0"], ["g1"], ["g2"], ["g3"]]


def test_gradients_of_one_codec_make_up_a_tensor():
    bucket = gradients(10, 1, 10, 1, 10, codecs=("int8", "", "int8", "", "int8"))
    assert cut(bucket, 80) == [["g0", "g2"], ["g1", "g3"], ["g4"]]


def test_what_travels_as_two_matrices_is_a_tensor_of_its_own():
    from braid.torch.ddp.power_sgd import Shape

    assert cut(gradients(4, 64, 4, shapes=(None, Shape(8, 8, 1), None)), 1000) == [["g1"], ["g0", "g2"]]


def test_a_tensor_is_named_after_its_gradients():
    from braid.torch.ddp.planned_tensors import members_of

    assert [member.name for member in members_of(gradients(10, 10, 30), 80)] == ["g0 and 1 more", "g2"]


def test_inputs_lie_one_after_the_other_each_where_its_type_may():
    from braid.torch.planned.tensors import Form

    sizes = [(torch.float16, 3), (torch.float64, 2), (torch.float32, 0), (torch.float16, 1)]
    places = places_of([Form("", dtype, count) for dtype, count in sizes])
    begin = places[0].memory.address
    assert [place.memory.address - begin for place in places] == [0, 8, 24, 24]
    assert [(place.view.dtype, place.view.numel()) for place in places] == sizes
    assert [place.view.data_ptr() for place in places if place.view.numel()] == [begin, begin + 8, begin + 24]


def test_neighbours_are_copied_in_one_piece():
    from braid.torch.ddp.planned_tensors import Layouts, Piece

    bucket = gradients(10, 20, 30)
    (tensor,) = tensors_of(bucket, bytes_min=1000)
    layout = Layouts([tensor]).of(parameters_of(bucket))
    assert layout.nbytes == 240
    assert [(part.tensor, part.pieces) for part in layout.parts] == [(tensor, [Piece(0, 0, 240)])]


def test_a_bucket_in_another_order_has_the_same_tensors():
    """As the first one of a model that is wrapped again, which has all gradients."""
    from braid.torch.ddp.planned_tensors import Layouts, Piece

    buckets = gradients(10, 20), gradients(5, 6, 7)
    tensors = tensors_of(*buckets, bytes_min=1000)
    (a, b), (c, d, e) = map(parameters_of, buckets)
    layout = Layouts(tensors).of([e, b, c, d, a])
    pieces = {part.tensor: part.pieces for part in layout.parts}
    assert pieces[tensors[0]] == [Piece(28, 40, 80), Piece(152, 0, 40)]
    assert pieces[tensors[1]] == [Piece(0, 44, 28), Piece(108, 0, 44)]


def test_a_bucket_with_half_a_tensor_has_no_layout():
    from braid.torch.ddp.planned_tensors import Layouts

    bucket = gradients(10, 20, 30)
    layouts = Layouts(tensors_of(bucket, bytes_min=1000))
    assert layouts.of(parameters_of(bucket)[:2]) is None
    assert layouts.of([*parameters_of(bucket), torch.empty(3)]) is None
    assert layouts.of(parameters_of(bucket)) is not None


def test_buckets_that_begin_alike_are_told_apart():
    from braid.torch.ddp.planned_tensors import Layouts

    first, second = gradients(10, 10), gradients(30)
    layouts = Layouts(tensors_of(first, second, bytes_min=1000))
    short, long = parameters_of(first), parameters_of(first + second)
    for _ in range(2):
        assert len(layouts.of(short).parts) == 1
        assert len(layouts.of(long).parts) == 2


@pytest.mark.parametrize(
    ("small", "large", "expected"),
    [
        (100e-6, 100e-6 + 126976 / 1e9, 1 << 17),  # 100 us are 100 kB at 1 GB/s
        (100e-6, 100e-6 + 126976 / 125e6, 1 << 14),  # 12.5 kB at 1 Gbit/s
        (5e-3, 6e-3, 1 << 20),
        (100e-6, 90e-6, 1 << 20),  # The larger one was quicker: sizes play no part.
        (1e-9, 1.0, 1 << 14),
    ],
)
def test_a_call_pays_for_what_travels_meanwhile(small, large, expected):
    from braid.torch.ddp.tensor_sizes import bytes_of_a_call

    assert bytes_of_a_call(small, large) == expected


@cache
def trained(smallest: str = "") -> list[Any]:
    environment = {"BRAID_SMALLEST_TENSOR": smallest}
    done = run("many_parameters.py", MANY, SMALL, nodes=2, ranks_per_node=1, environment=environment)
    assert "are reduced by DDP's buckets" not in done.output
    return [result["models"] for result in done.expect(2)]


@pytest.mark.parametrize("shape", [MANY, SMALL])
def test_a_step_calls_a_hundred_times_at_most_however_many_parameters_there_are(shape):
    ranks = [models[shape] for models in trained()]
    for model in ranks:
        assert model["right"]
        assert model["parameters"] == int(shape.split("x")[0])
        # Those of 16 KiB, the least that is measured, and what is left over.
        assert model["tensors"] <= min(100, model["bytes"] // (1 << 14)) + 1
        assert model["hook"] == model["submit"] == model["tensors"]
        # One call waits, copies and releases.
        assert model["wait"] == model["result"] == model["release"] == 0
    assert len({model["tensors"] for model in ranks}) == 1


@once
def test_the_smallest_tensor_can_be_given():
    for models in trained("8192"):
        model = models[SMALL]
        assert model["right"]
        # 137 of 512 bytes and 23 of four: 16 of the former fill a bucket.
        assert model["tensors"] == 9
        assert model["hook"] == model["submit"] == model["tensors"]
