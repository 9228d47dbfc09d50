# SPDX-License-Identifier: Apache-2.0
"""Collectives on CUDA tensors: a call returns before the operation ends, whatever the tensors look like. No GPU is
needed: made_up_gpu.py."""

from __future__ import annotations

from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")

from in_process import run_ranks  # noqa: E402
from torch.distributed import ReduceOp  # noqa: E402

pytestmark = pytest.mark.once
RANKS = 3


def ramp(rank, *shape, dtype=torch.float32):
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count) % 5 + 10 * rank + 1).view(shape).to(dtype)


def seen_now(tensors):
    """What the script finds after its wait, and not what has come when the group ends."""
    return tensors.clone() if isinstance(tensors, torch.Tensor) else [seen_now(each) for each in tensors]


FORMS = {
    "one": lambda rank: [ramp(rank, 4, 3)],
    "turned": lambda rank: [ramp(rank, 4, 3).t()],
    "half": lambda rank: [ramp(rank, 7, dtype=torch.bfloat16)],
    "bools": lambda rank: [ramp(rank, 6) > 12],
    "complex": lambda rank: [torch.complex(ramp(rank, 5), ramp(rank, 5) + 2)],
    "a scalar": lambda rank: [torch.tensor(2.0 + rank)],
    "several": lambda rank: [ramp(rank, 3), ramp(rank, 2, 2).t(), ramp(rank, 1)],
    "two types": lambda rank: [ramp(rank, 3), ramp(rank, 2, dtype=torch.int64)],
}


def expected_sum(form):
    parts = [FORMS[form](rank) for rank in range(RANKS)]
    sums = [sum(tensors[1:], tensors[0].clone()) for tensors in zip(*parts)]
    return [each.bool() if parts[0][0].dtype == torch.bool else each for each in sums]


@pytest.mark.parametrize("form", FORMS)
def test_an_all_reduce(gpu, form):
    def work(group, world):
        tensors = [gpu.put(each) for each in FORMS[form](group.rank())]
        group.allreduce(tensors).wait()
        return seen_now(tensors)

    for tensors in run_ranks(RANKS, work):
        assert all(torch.equal(mine, right) for mine, right in zip(tensors, expected_sum(form)))
    assert gpu.holds_of == []


@pytest.mark.parametrize("form", FORMS)
def test_a_broadcast(gpu, form):
    def work(group, world):
        tensors = [gpu.put(each) for each in FORMS[form](group.rank())]
        group.broadcast(tensors, root=1).wait()
        return seen_now(tensors)

    for tensors in run_ranks(RANKS, work):
        assert all(torch.equal(mine, right) for mine, right in zip(tensors, FORMS[form](1)))
    assert gpu.holds_of == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("apart", [False, True])
def test_an_all_gather_into_lists(gpu, form, apart):
    """Into the rows of one tensor, or into tensors that lie apart."""

    def work(group, world):
        inputs = [gpu.put(each) for each in FORMS[form](group.rank())]
        if apart:
            outputs = [[gpu.put(torch.zeros_like(each)) for _ in range(RANKS)] for each in inputs]
        else:
            wholes = [gpu.put(torch.zeros(RANKS, *each.shape, dtype=each.dtype)) for each in inputs]
            outputs = [list(whole.unbind()) for whole in wholes]
        group.allgather(outputs, inputs).wait()
        return seen_now(outputs)

    for outputs in run_ranks(RANKS, work):
        for place, by_rank in enumerate(outputs):
            assert all(torch.equal(got, FORMS[form](rank)[place]) for rank, got in enumerate(by_rank))
    assert gpu.holds_of == []


def test_an_all_gather_of_blocks_of_different_sizes(gpu):
    def work(group, world):
        outputs = [gpu.put(torch.zeros(2 + rank)) for rank in range(RANKS)]
        group.allgather([outputs], [gpu.put(ramp(group.rank(), 2 + group.rank()))]).wait()
        return seen_now(outputs)

    for outputs in run_ranks(RANKS, work):
        assert all(torch.equal(got, ramp(rank, 2 + rank)) for rank, got in enumerate(outputs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_all_gather_into_one_tensor(gpu, dtype):
    def work(group, world):
        output = gpu.put(torch.zeros(RANKS * 4, dtype=dtype))
        group.all_gather_single(output, gpu.put(ramp(group.rank(), 4, dtype=dtype))).wait()
        return seen_now(output)

    right = torch.cat([ramp(rank, 4, dtype=dtype) for rank in range(RANKS)])
    assert all(torch.equal(output, right) for output in run_ranks(RANKS, work))


def test_an_all_gather_in_place(gpu):
    def work(group, world):
        output = gpu.put(torch.zeros(RANKS * 4))
        mine = output[4 * group.rank() :][:4]
        mine.copy_(ramp(group.rank(), 4))
        group.all_gather_single(output, mine).wait()
        return seen_now(output)

    right = torch.cat([ramp(rank, 4) for rank in range(RANKS)])
    assert all(torch.equal(output, right) for output in run_ranks(RANKS, work))


@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.MAX])
@pytest.mark.parametrize("sizes", [(4, 4, 4), (3, 4, 4), (1, 1, 9)])
def test_a_reduce_scatter_of_lists(gpu, op, sizes):
    def work(group, world):
        output = gpu.put(torch.zeros(sizes[group.rank()]))
        blocks = [gpu.put(ramp(group.rank(), size)) for size in sizes]
        group.reduce_scatter([output], [blocks], _options(op)).wait()
        return seen_now(output)

    for rank, output in enumerate(run_ranks(RANKS, work)):
        parts = torch.stack([ramp(each, sizes[rank]) for each in range(RANKS)])
        right = {ReduceOp.SUM: parts.sum(0), ReduceOp.AVG: parts.mean(0), ReduceOp.MAX: parts.amax(0)}[op]
        assert torch.equal(output, right)
    assert gpu.holds_of == []


def begin_with_one(group, gpu):
    """In the first one all ranks wait for each other."""
    group.allreduce([gpu.put(torch.ones(1))]).wait()


def _options(op):
    from types import SimpleNamespace

    return SimpleNamespace(reduceOp=op, timeout=timedelta(0), asyncOp=True)


def test_a_call_returns_before_the_operation_ends(gpu):
    def work(group, world):
        begin_with_one(group, gpu)
        tensor = gpu.put(ramp(group.rank(), 4))
        if group.rank() == 0:
            started = group.allreduce([tensor])
            assert not started.is_completed()
            group.barrier().wait()  # The others come only now.
        else:
            group.barrier().wait()
            started = group.allreduce([tensor])
        started.wait(timedelta(seconds=60))
        assert started.is_completed() and started.is_success() and started.exception() is None
        return seen_now(tensor)

    right = sum(ramp(rank, 4) for rank in range(RANKS))
    assert all(torch.equal(tensor, right) for tensor in run_ranks(RANKS, work))


def test_a_wait_with_a_timeout_holds_the_thread_no_longer(gpu):
    def work(group, world):
        begin_with_one(group, gpu)
        if group.rank() == 0:
            started = group.allreduce([gpu.put(torch.ones(2))])
            with pytest.raises(Exception, match="still in flight after 0.05 s"):
                started.wait(timedelta(seconds=0.05))
            assert not started.is_success()
            group.barrier().wait()
            return
        group.barrier().wait()
        group.allreduce([gpu.put(torch.ones(2))]).wait()

    run_ranks(2, work)


def test_a_future_has_ended_and_its_callbacks_come_behind_the_operation(gpu):
    def work(group, world):
        tensor = gpu.put(ramp(group.rank(), 4))
        future = group.allreduce([tensor]).get_future()
        assert future.done()
        return future.then(lambda f: f.value()[0] * 2).wait()

    right = 2 * sum(ramp(rank, 4) for rank in range(RANKS))
    assert all(torch.equal(doubled, right) for doubled in run_ranks(RANKS, work))


def test_collectives_of_both_kinds_do_not_come_between_each_other(gpu):
    """A rank may start one of the CPU's before or after one of the GPU's."""

    def work(group, world):
        there, here = gpu.put(torch.ones(3)), torch.ones(2)
        first, second = (there, here) if group.rank() == 0 else (here, there)
        works = [group.allreduce([first]), group.allreduce([second])]
        for each in works:
            each.wait()
        return there.tolist() + here.tolist()

    assert run_ranks(2, work) == [[2] * 5] * 2


def test_coalesced_collectives_are_one_work(gpu):
    def work(group, world):
        tensors = [gpu.put(ramp(group.rank(), 3)), gpu.put(ramp(group.rank(), 2))]
        group._start_coalescing(torch.device("cpu"))
        for tensor in tensors:
            group.allreduce([tensor])
        group._end_coalescing(torch.device("cpu")).wait()
        return seen_now(tensors)

    for first, second in run_ranks(2, work):
        assert torch.equal(first, ramp(0, 3) + ramp(1, 3)) and torch.equal(second, ramp(0, 2) + ramp(1, 2))


def test_tensors_are_held_until_the_copies_are_over(gpu):
    """By nobody but the operation, also where nobody waits for it."""
    import weakref

    def work(group, world):
        begin_with_one(group, gpu)
        if group.rank() == 0:
            tensor = gpu.put(torch.ones(4))
            seen = weakref.ref(tensor)
            group.allreduce([tensor])
            del tensor
            assert seen() is not None
            group.barrier().wait()
            group.barrier().wait()
            group.engine.on_devices.look()
            assert seen() is None
            return
        group.barrier().wait()
        group.allreduce([gpu.put(torch.ones(4))]).wait()
        group.barrier().wait()

    run_ranks(2, work)


def test_results_of_all_come_where_threads_wait_also_of_what_ends_before_it_is_waited_for(gpu):
    def work(group, world):
        group.engine.job.streams_can_wait = False
        tensors = [gpu.put(torch.ones(2)), gpu.put(torch.ones(3))]
        first = group.allreduce(tensors[:1])
        group.barrier().wait()  # It ends here, and nobody has waited for it.
        second = group.allreduce(tensors[1:])
        for each in (first, second):
            each.wait()
        assert first.is_completed() and second.is_completed()
        return tensors[0].tolist() + tensors[1].tolist()

    assert run_ranks(2, work) == [[2] * 5] * 2


def test_where_libbraid_cannot_take_tensors_from_a_gpu_of_any_rank_threads_wait(gpu, caplog):
    caplog.set_level("INFO", logger="braid")

    def work(group, world):
        world.levels = 0
        tensor = gpu.put(ramp(group.rank(), 4).t())
        for _ in range(2):
            group.allreduce([tensor], ReduceOp.MAX).wait()
        return seen_now(tensor)

    assert all(torch.equal(tensor, ramp(1, 4)) for tensor in run_ranks(2, work))
    assert [each.levelname for each in caplog.records if "through the CPU's memory" in each.message] == ["WARNING"]
    assert gpu.holds_of


@pytest.mark.parametrize("levels, way", [(1, "go over braid alone"), (2, "go in two levels, NCCL within each node")])
def test_the_way_of_a_job_s_tensors_is_found_out_and_logged_once(gpu, caplog, levels, way):
    caplog.set_level("INFO", logger="braid")

    def work(group, world):
        world.levels = levels
        group.barrier().wait()
        assert group.rank() not in world.opened  # Who has no tensors on a GPU asks for nothing.
        for _ in range(3):
            begin_with_one(group, gpu)
        assert world.opened == {0, 1}

    run_ranks(2, work)
    told = [each.message for each in caplog.records if "CUDA tensors of job threads" in each.message]
    assert len(told) == 1 and way in told[0] and told[0].endswith("chosen by the test")


def test_in_two_levels_each_rank_takes_its_result_also_where_nobody_asks_for_it(gpu):
    """And nobody finds it in a tensor that is not to be changed."""

    def work(group, world):
        world.levels = 2
        tensors = [gpu.put(ramp(group.rank(), 4)), gpu.put(ramp(group.rank(), 3).flip(0))]
        group.broadcast(tensors, root=1).wait()
        root = gpu.put(ramp(group.rank(), 5))
        group.reduce([root], 0).wait()
        return seen_now([*tensors, root])

    for rank, (first, second, root) in enumerate(run_ranks(RANKS, work)):
        assert torch.equal(first, ramp(1, 4)) and torch.equal(second, ramp(1, 3).flip(0))
        assert torch.equal(root, ramp(rank, 5) if rank else sum(ramp(each, 5) for each in range(RANKS)))


def test_what_ends_the_job_meanwhile_is_the_error_of_the_first_collective(gpu):
    def work(group, world):
        if group.rank() == 0:
            world.fail("rank 1 on node 'b' was lost")
            with pytest.raises(RuntimeError, match="rank 1 on node 'b' was lost"):
                begin_with_one(group, gpu)

    run_ranks(2, work)
