# SPDX-License-Identifier: Apache-2.0
"""DDP's gradients on CUDA tensors: nobody waits while they are submitted, and sums have the bits of the CPU's way. No
GPU is needed: made_up_gpu.py."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from in_process import run_ranks  # noqa: E402

pytestmark = pytest.mark.once
RANKS, STEPS = 2, 5


@pytest.fixture
def gpu(gpu, monkeypatch):
    # What DDP's hook says its model's tensors are is measured at the first model.
    monkeypatch.setenv("BRAID_SMALLEST_TENSOR", "100")
    return gpu


class Model(torch.nn.Module):
    """With gradients that are joined, and two that are large enough by themselves."""

    def __init__(self, dtype):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        for place, shape in enumerate([(3,), (5,), (16, 12), (5,), (2, 2), (24, 8)]):
            values = torch.randn(shape, generator=generator).to(dtype)
            self.register_parameter(f"p{place}", torch.nn.Parameter(values))


class Backward:
    """Backward passes as DDP makes them: a hook is given buckets of gradients that it averages."""

    def __init__(self, group, put, dtype=torch.float32, turned_from=1):
        from braid.torch import DDPHookState

        self.group, self.put, self.turned_from = group, put, turned_from
        self.model = Model(dtype)
        self.state = DDPHookState(self.model, group)

    def buckets(self, step):
        parameters = list(self.model.parameters())[::-1]
        yield parameters[:3]
        # DDP's second order of gradients is the one that stays; neighbours then lie apart in a bucket.
        yield parameters[:2:-1] if step >= self.turned_from else parameters[3:]

    def values(self, step, rank, parameter):
        generator = torch.Generator().manual_seed(1000 * step + 10 * rank + parameter.numel())
        return torch.randn(parameter.numel(), generator=generator).to(parameter.dtype)

    def start(self, step):
        from braid.torch import ddp_hook

        futures = []
        for index, parameters in enumerate(self.buckets(step)):
            buffer = torch.cat([self.values(step, self.group.rank(), each) for each in parameters])
            made = self.put(buffer)
            bucket = SimpleNamespace(
                index=lambda index=index: index, buffer=lambda made=made: made,
                parameters=lambda parameters=parameters: parameters,
            )  # fmt: skip
            futures.append(ddp_hook(self.state, bucket))
        return futures

    def step(self, number):
        return [future.wait().clone() for future in self.start(number)]


def averages(gpu, put, **options):
    """What training gives in each step, by rank."""

    def work(group, world):
        backward = Backward(group, put, **options)
        return [backward.step(number) for number in range(STEPS)]

    return run_ranks(RANKS, work)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("turned_from", [1, 3])
def test_averages_have_the_same_bits_as_through_the_arena(gpu, dtype, turned_from):
    there = averages(gpu, gpu.put, dtype=dtype, turned_from=turned_from)
    here = averages(gpu, lambda tensor: tensor, dtype=dtype, turned_from=turned_from)
    for mine, right in zip(there, here):
        for step, other in zip(mine, right):
            assert all(torch.equal(a, b) for a, b in zip(step, other))
    assert gpu.holds_of == []


def test_gradients_go_from_the_gpu(gpu, monkeypatch):
    """So the test above has compared what it says."""
    seen = []

    def work(group, world):
        submit, put = group.engine.job.submit_device, group.engine.job.submit_raw
        job = group.engine.job
        job.submit_device = lambda *arguments, **options: seen.append(len(seen)) or submit(*arguments, **options)
        job.submit_raw = put
        backward = Backward(group, gpu.put)
        for number in range(3):
            backward.step(number)

    run_ranks(RANKS, work)
    # Two buckets in each of the first two steps, then tensors.
    assert len(seen) > RANKS * (2 + 2 + 2)


def test_powersgd_has_the_same_bits(gpu):
    from braid.torch import set_codec

    def work(put):
        def train(group, world):
            backward = Backward(group, put)
            set_codec(backward.model, "powersgd:rank=2")
            return [backward.step(number) for number in range(STEPS)]

        return run_ranks(RANKS, train)

    for mine, right in zip(work(gpu.put), work(lambda tensor: tensor)):
        for step, other in zip(mine, right):
            assert all(torch.equal(a, b) for a, b in zip(step, other))
    assert gpu.holds_of == []


def test_a_backward_pass_that_is_abandoned_spoils_no_later_one(gpu):
    from braid.torch import ddp_hook

    def work(group, world):
        backward = Backward(group, gpu.put)
        for number in range(3):
            backward.step(number)
        first = next(backward.buckets(3))
        made = gpu.put(torch.cat([backward.values(3, group.rank(), each) for each in first]))
        ddp_hook(
            backward.state,
            SimpleNamespace(index=lambda: 0, buffer=lambda: made, parameters=lambda: first),
        )
        return backward.step(4)

    right = averages(gpu, lambda tensor: tensor)[0][4]
    for mine in run_ranks(RANKS, work):
        assert all(torch.equal(a, b) for a, b in zip(mine, right))


def test_an_error_comes_out_of_the_same_backward_pass(gpu):
    def work(group, world):
        backward = Backward(group, gpu.put)
        for number in range(3):
            backward.step(number)
        if group.rank() == 0:
            futures = backward.start(3)
            world.fail("rank 1 on node 'b' was lost")
            with pytest.raises(RuntimeError, match="rank 1 on node 'b' was lost"):
                futures[0].wait()

    run_ranks(RANKS, work)


def test_the_thread_that_trains_waits_for_nothing(gpu):
    """It submits a whole backward pass before any other rank has begun its own."""
    submitted = threading.Event()

    def work(group, world):
        backward = Backward(group, gpu.put)
        for number in range(3):
            backward.step(number)
        if group.rank() == 0:
            futures = backward.start(3)
            assert not any(future.done() for future in futures)
            submitted.set()
        else:
            assert submitted.wait(60)
            futures = backward.start(3)
        return [future.wait().clone() for future in futures]

    first, second = run_ranks(RANKS, work)
    assert all(torch.equal(a, b) for a, b in zip(first, second))


@pytest.mark.parametrize("codec", ["none", "int8"])
def test_in_two_levels_gradients_without_a_codec_stay_in_buckets(gpu, caplog, codec):
    from braid.torch import set_codec

    caplog.set_level("INFO", logger="braid")

    def work(group, world):
        world.levels = 2
        submitted = []
        job = group.engine.job
        submit = job.submit_device
        job.submit_device = lambda *arguments, **options: submitted.append(arguments[1]) or submit(
            *arguments, **options
        )
        backward = Backward(group, gpu.put)
        set_codec(backward.model, codec)
        averages = [backward.step(number) for number in range(STEPS)]
        return averages, submitted

    right = averages(gpu, lambda tensor: tensor)
    for (mine, submitted), other in zip(run_ranks(RANKS, work), right):
        for step, expected in zip(mine, other):
            for a, b in zip(step, expected):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
        # Two buckets a step, in the collectives' own tensor, or from the third step on gradients.
        if codec == "none":
            assert len(submitted) == 2 * STEPS and len(set(submitted)) == 1
        else:
            assert len(set(submitted)) > 2
    told = [each for each in caplog.messages if "by DDP's buckets, in two levels" in each]
    assert len(told) == (codec == "none")
