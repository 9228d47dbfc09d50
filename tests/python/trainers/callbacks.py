# SPDX-License-Identifier: Apache-2.0
"""Callbacks of futures that start collectives and wait for them, as torch's PowerSGD hooks do."""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from ddp_models import small
from report import report
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import braid.torch

STEPS = 6
# A callback that waits for itself is seen by this, with all threads' stacks.
SECONDS = 240


def orthogonalize(matrices: torch.Tensor, epsilon: float = 0) -> None:
    """The batched hook gives torch's own a matrix where it takes a list of them only."""
    torch_orthogonalize(matrices if matrices.dim() == 3 else matrices.unsqueeze(0), epsilon)


torch_orthogonalize = powersgd._orthogonalize
powersgd._orthogonalize = orthogonalize


def train(group: Any, hook: Callable[..., Any], **options: Any) -> list[torch.Tensor]:
    """With buckets of two or three parameters: small ones and, for PowerSGD, large ones."""
    torch.manual_seed(3)
    model = DistributedDataParallel(small(), process_group=group, bucket_cap_mb=2**-10)
    state = powersgd.PowerSGDState(
        group, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=1,
        **options,
    )  # fmt: skip
    model.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(STEPS):
        optimizer.zero_grad()
        images = torch.randn(8, 12, generator=data)
        labels = torch.randint(0, 3, (8,), generator=data)
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    # Else nothing was compressed.
    assert state.compression_stats()[1] > 0 and len(state.q_memory_dict) > 0
    return [parameter.detach() for parameter in model.parameters()]


def one_by_one(hook: Callable[..., Any]) -> Callable[..., Any]:
    """gloo counts what callbacks start along with the rest, so there buckets wait for each other."""

    def waiting(state, bucket):  # DDP refuses annotations that are postponed.
        future = hook(state, bucket)
        future.wait()
        return future

    return waiting


def powersgd_trains_as_with_gloo() -> None:
    for hook in (powersgd.powerSGD_hook, powersgd.batched_powerSGD_hook):
        ours, theirs = train(BRAID, hook), train(GLOO, one_by_one(hook))
        for mine, other in zip(ours, theirs):
            assert torch.allclose(mine, other, rtol=1e-4, atol=1e-6), (hook, mine, other)


def reduced(value: float, group: Any = None) -> torch.futures.Future:
    return dist.all_reduce(torch.full((5,), value), group=group, async_op=True).get_future()


def total(factor: float) -> float:
    return factor * sum(range(1, SIZE + 1))


def of_rank(factor: float) -> float:
    return factor * (RANK + 1)


def two_levels(factor: float, slow: bool) -> torch.futures.Future:
    """Callbacks start all-reduces, whose callbacks do, too; some are waited for, some not."""

    def below(future: Any) -> Any:
        if not slow:
            time.sleep(0.001)
        last = reduced(of_rank(100 * factor)).wait()[0]
        return future.value()[0][0] + last[0]

    def first(future: Any) -> Any:
        if slow:
            time.sleep(0.003)
        nested = reduced(of_rank(10 * factor)).then(below)
        beside = torch.full((3,), of_rank(1000 * factor))
        dist.all_reduce(beside)
        return future.value()[0][0] + nested.wait() + beside[0]

    def second(future: Any) -> Any:
        return future.value() + reduced(of_rank(10000 * factor)).wait()[0][0]

    return reduced(of_rank(factor)).then(first).then(second)


def in_another_order_on_every_rank() -> None:
    """The main thread goes on with collectives of its own, ahead of callbacks or behind them."""
    futures, mains = [], []
    for n in range(80):
        futures.append(two_levels(n + 1, slow=(n + RANK) % 2 == 0))
        if (n + RANK) % 7 == 0:
            time.sleep(0.004)
        main = torch.full((4,), of_rank(n))
        mains.append((main, dist.all_reduce(main, async_op=True)))
    for n, (main, work) in enumerate(mains):
        work.wait()
        assert torch.equal(main, torch.full((4,), total(n))), (n, main)
    for n, future in enumerate(futures):
        # 32-bit floats: sums of integers of this size are exact.
        assert future.wait() == total(11111 * (n + 1)), (n, future.wait())


def given_late_and_in_any_order() -> None:
    """Callbacks are given before the end on some ranks and after it on others."""
    futures = [reduced(of_rank(n)) for n in range(12)]
    if RANK % 2:
        torch.futures.wait_all(futures)
    turned = range(11, -1, -1) if RANK % 2 else range(12)
    sums: list[Any] = [None] * 12
    for n in turned:
        sums[n] = futures[n].then(
            lambda future, n=n: future.value()[0] + reduced(of_rank(100 * n)).wait()[0]
        )
    for n, value in enumerate(torch.futures.wait_all(sums)):
        assert torch.equal(value, torch.full((5,), total(101 * n))), (n, value)


def several_groups() -> None:
    """A callback of one group's operation starts operations of another group."""
    other = dist.new_group(list(range(SIZE)))
    futures = [
        reduced(of_rank(n), other).then(
            lambda future, n=n: future.value()[0]
            + reduced(of_rank(10 * n)).wait()[0]
            + reduced(of_rank(100 * n), other).wait()[0]
        )
        for n in range(8)
    ]
    mains = [reduced(of_rank(n)) for n in range(8)]
    for n in range(8):
        assert futures[n].wait()[0] == total(111 * n)
        assert mains[n].wait()[0][0] == total(n)
    dist.destroy_process_group(other)


def of_what_goes_to_gloo() -> None:
    """braid does not reduce these numbers itself; their futures are like those of what it does."""

    def begun(n: int) -> torch.futures.Future:
        small = torch.full((2,), RANK + 1, dtype=torch.int8)
        future = dist.all_reduce(small, async_op=True).get_future()
        return future.then(
            lambda future: future.value()[0][0].item() + reduced(of_rank(100 * n)).wait()[0][0].item()
        )

    futures = [begun(n) for n in range(8)]
    mains = [reduced(of_rank(n)) for n in range(8)]
    for n in range(8):
        assert futures[n].wait() == total(1 + 100 * n)
        assert mains[n].wait()[0][0] == total(n)


def planned_gradients() -> None:
    """A callback of braid's own hook."""
    seen = []

    def hook(state, bucket):
        def check(future):
            value = torch.full((2,), float(bucket.index()))
            dist.all_reduce(value)
            seen.append(value[0].item() == SIZE * bucket.index())
            return future.value()

        return braid.torch.ddp_hook(state, bucket).then(check)

    model = DistributedDataParallel(small(), bucket_cap_mb=2**-20)
    model.register_comm_hook(braid.torch.DDPHookState(model), hook)
    for _ in range(STEPS):
        model(torch.ones(2, 12)).sum().backward()
    assert all(seen) and len(seen) == 1 + 4 * (STEPS - 1), seen


def errors() -> None:
    """What a callback raises reaches the future, those after it, and DDP's backward pass."""

    def fails(future: Any) -> Any:
        reduced(1).wait()
        raise ValueError("on purpose")

    future = reduced(1).then(fails).then(lambda future: future.value())
    try:
        future.wait()
        raise AssertionError("no error")
    except RuntimeError as error:
        assert "on purpose" in str(error)

    def hook(state, bucket):
        return reduced(1).then(fails)

    model = DistributedDataParallel(small())
    model.register_comm_hook(None, hook)
    try:
        model(torch.ones(2, 12)).sum().backward()
        raise AssertionError("no error")
    except RuntimeError as error:
        assert "on purpose" in str(error)
    called = []
    reduced(1).add_done_callback(lambda future: called.append(future.value()[0][0].item()))
    future = reduced(1)
    future.add_done_callback(fails)  # Its error is logged.
    dist.barrier()
    future.then(lambda future: None).wait()
    reduced(1).wait()
    deadline = time.monotonic() + SECONDS
    while not called and time.monotonic() < deadline:
        time.sleep(0.01)
    assert called == [SIZE]


def futures_of_others_stay_as_they_are() -> None:
    promise: torch.futures.Future = torch.futures.Future()
    doubled = promise.then(lambda future: 2 * future.value())
    promise.set_result(4)
    assert doubled.done() and doubled.value() == 8


braid.torch.register()
dist.init_process_group("braid")
BRAID = dist.distributed_c10d._get_default_group()
GLOO = dist.new_group(backend="gloo")
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def main() -> None:
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    done = []
    for case in (
        powersgd_trains_as_with_gloo, in_another_order_on_every_rank, given_late_and_in_any_order,
        several_groups, of_what_goes_to_gloo, planned_gradients, errors, futures_of_others_stay_as_they_are,
    ):  # fmt: skip
        case()
        done.append(case.__name__)
        print(case.__name__, flush=True)
    faulthandler.cancel_dump_traceback_later()
    report(done=done)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
