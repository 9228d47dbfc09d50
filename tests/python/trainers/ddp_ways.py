# SPDX-License-Identifier: Apache-2.0
"""Trains models with DDP in many ways on braid, each beside its twin on gloo in the same process.

With `hook` braid's hook is registered by name; with `unmodified` the script was started by
braid-run and does nothing of its own.
"""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from ddp_models import GROUP, Mixed, Normed, Optional, Shared, small
from report import Heard, digest, report
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import braid.torch
from braid.torch.ddp.hook import DDPHookState

HOOK = sys.argv[1] == "hook"
ONLY = sys.argv[2:]
STEPS = 6


WARNINGS = Heard()


def batch(step: int, rows: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    data = torch.Generator().manual_seed(1000 * step + dist.get_rank())
    return torch.randn(rows, 12, generator=data), torch.randint(0, 3, (rows,), generator=data)


def wrap(module: torch.nn.Module, group: Any, **options: Any) -> DistributedDataParallel:
    model = DistributedDataParallel(module, process_group=group, **options)
    if HOOK and group is BRAID:
        model.register_comm_hook(DDPHookState(model), braid.torch.ddp_hook)
    return model


def train(
    model: DistributedDataParallel, steps: int = STEPS, accumulate: int = 1, join: Any = None
) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    with model.join(**join) if join is not None else contextlib.nullcontext():
        for step in range(steps):
            optimizer.zero_grad()
            for part in range(accumulate):
                last = part == accumulate - 1
                with contextlib.nullcontext() if last else model.no_sync():
                    images, labels = batch(step * accumulate + part)
                    loss = functional.cross_entropy(model(images).float(), labels)
                    loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def planned(model: DistributedDataParallel) -> int:
    """How many gradients of the model are planned; through the hook's insides."""
    return STATES[model]._gradients.parameter_count if model in STATES else 0


STATES: weakref.WeakKeyDictionary[Any, DDPHookState] = weakref.WeakKeyDictionary()
_make = DDPHookState.__init__


def _kept(self: DDPHookState, model: Any, *args: Any) -> None:
    _make(self, model, *args)
    STATES[model] = self


DDPHookState.__init__ = _kept  # type: ignore[method-assign]


def compare(make: Callable[[], torch.nn.Module], tolerance: float = 1e-5, **options: Any) -> Any:
    """Trains twins; `options` beginning with train_ are train()'s. Returns the braid model."""
    ways = {name[6:]: options.pop(name) for name in list(options) if name.startswith("train_")}
    results = []
    for group in (BRAID, GLOO):
        torch.manual_seed(3)
        GROUP[0] = group
        model = wrap(make(), group, **options)
        losses = train(model, **ways)
        results.append((model, losses))
    (ours, our_losses), (theirs, their_losses) = results
    for mine, other in zip(our_losses, their_losses):
        assert abs(mine - other) <= tolerance * abs(other), (our_losses, their_losses)
    for mine, other in zip(ours.module.parameters(), theirs.module.parameters()):
        assert torch.allclose(
            torch.view_as_real(mine) if mine.is_complex() else mine.float(),
            torch.view_as_real(other) if other.is_complex() else other.float(),
            rtol=100 * tolerance, atol=10 * tolerance,
        )  # fmt: skip
    digests: list[Any] = [None] * dist.get_world_size()
    parameters = ours.module.parameters()
    values = (torch.view_as_real(p) if p.is_complex() else p.double() for p in parameters)
    dist.all_gather_object(digests, digest(v.detach() for v in values))
    assert len(set(digests)) == 1
    return ours


def plain() -> None:
    assert planned(compare(small)) == 4


def views_of_buckets() -> None:
    assert planned(compare(small, gradient_as_bucket_view=True)) == 4


def large_buckets() -> None:
    assert planned(compare(small, bucket_cap_mb=25)) == 4


def static_graph() -> None:
    assert planned(compare(small, static_graph=True)) == 4


def unused_parameters() -> None:
    assert planned(compare(Optional, find_unused_parameters=True, train_steps=9)) == 10


def accumulated() -> None:
    assert planned(compare(small, train_accumulate=3)) == 4


def shared_frozen_empty() -> None:
    assert planned(compare(Shared)) in (5, 6)


def float64_and_bfloat16() -> None:
    model = compare(lambda: Mixed((torch.float64, torch.bfloat16)), tolerance=2e-2)
    assert planned(model) == 6


def float16() -> None:
    assert planned(compare(lambda: Mixed((torch.float16,)), tolerance=2e-3)) == 4


def complex_numbers() -> None:
    if tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 9):
        return  # Its gloo does not broadcast them.
    assert planned(compare(lambda: Mixed((torch.complex64,)))) == 2


def collective_in_backward() -> None:
    assert planned(compare(Normed)) == 4


def joined() -> None:
    steps = STEPS + dist.get_rank()
    assert planned(compare(small, train_steps=steps, train_join={})) == 4


def joined_without_any_input() -> None:
    """The last rank, or the first, takes no step at all, so it has no forward pass either."""
    if HOOK:
        return
    for divides in (True, False):
        for idle in (0, dist.get_world_size() - 1):
            steps = 0 if dist.get_rank() == idle else STEPS
            join = {"divide_by_initial_world_size": divides}
            assert planned(compare(small, train_steps=steps, train_join=join)) == 4


def joined_among_active() -> None:
    if HOOK:
        return
    steps = STEPS + dist.get_rank()
    join = {"divide_by_initial_world_size": False}
    assert planned(compare(small, train_steps=steps, train_join=join)) == 4


def joined_in_a_torch_function_mode() -> None:
    """It adds stack frames of its own between DDP and the process group."""
    if HOOK:
        return
    steps = STEPS + dist.get_rank()
    join = {"divide_by_initial_world_size": False}
    with torch.device("cpu"):
        assert planned(compare(small, train_steps=steps, train_join=join)) == 4


def ignored_parameters() -> None:
    def make() -> torch.nn.Module:
        module = small()
        module._ddp_params_and_buffers_to_ignore = ["0.bias"]
        module[0].bias.requires_grad_(False)  # Ranks would drift apart.
        module[0].bias.data.zero_()
        return module

    assert planned(compare(make)) == 3


def two_models() -> None:
    """Both in one backward pass, first run in different orders on different ranks."""
    results = []
    for group in (BRAID, GLOO):
        torch.manual_seed(3)
        models = [wrap(small(), group), wrap(small(), group)]
        parameters = [p for model in models for p in model.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        losses = []
        for step in range(STEPS):
            optimizer.zero_grad()
            images, labels = batch(step)
            outputs = models[0](images) + models[1](images)
            loss = functional.cross_entropy(outputs, labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        results.append(losses)
        assert group is GLOO or [planned(model) for model in models] == [4, 4]
    assert torch.allclose(*map(torch.tensor, results), rtol=1e-5), results


def subgroup() -> None:
    """DDP over half of the ranks."""
    size = dist.get_world_size()
    halves = [list(range(size // 2)), list(range(size // 2, size))]
    for ranks in halves:
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            model = DistributedDataParallel(small(), process_group=group)
            if HOOK:
                model.register_comm_hook(DDPHookState(model), braid.torch.ddp_hook)
            train(model)
            assert planned(model) == 4


def own_hook_is_kept() -> None:
    if HOOK:
        return
    calls = []

    def counted(state, bucket):  # DDP refuses annotations that are postponed.
        calls.append(bucket.index())
        return default_hooks.allreduce_hook(state, bucket)

    model = DistributedDataParallel(small(), process_group=BRAID)
    model.register_comm_hook(BRAID, counted)
    train(model)
    assert STATES[model].step == -1 and len(calls) == STEPS
    calls.clear()
    late = DistributedDataParallel(small(), process_group=BRAID)
    train(late)
    late.register_comm_hook(BRAID, counted)
    train(late)
    assert len(calls) == STEPS
    built_in = DistributedDataParallel(small(), process_group=BRAID)
    built_in._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
    train(built_in)
    assert STATES[built_in].step == -1
    late = DistributedDataParallel(small(), process_group=BRAID)
    train(late)
    late._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
    pickle.dumps(late)
    train(late)
    assert STATES[late].step == STEPS - 1


def own_hook_gets_its_buckets() -> None:
    """Those that the script chose, whenever it registers the hook, as with gloo."""
    if HOOK:
        return
    for late in (False, True):
        for options in (
            {}, {"static_graph": True}, {"gradient_as_bucket_view": True},
            {"find_unused_parameters": True}, {"bucket_cap_mb": None},
        ):  # fmt: skip
            (ours, buckets), (theirs, expected) = [
                train_with_own_hook(group, late, {"bucket_cap_mb": 2**-12, **options}) for group in (BRAID, GLOO)
            ]
            # The buckets of DDP's first steps are others: it learns what is ready when.
            first = 2 if late else 0
            assert buckets[first:] == expected[first:], (late, options, buckets, expected)
            assert torch.allclose(torch.tensor(ours), torch.tensor(theirs), rtol=1e-5)


def train_with_own_hook(group: Any, late: bool, options: Any) -> Any:
    buckets: list[list[list[int]]] = []

    def hook(state, bucket):
        if bucket.index() == 0:
            buckets.append([])
        buckets[-1].append([parameter.numel() for parameter in bucket.parameters()])
        return default_hooks.allreduce_hook(group, bucket)

    torch.manual_seed(3)
    model = DistributedDataParallel(small(), process_group=group, **options)
    losses = train(model) if late else []
    model.register_comm_hook(None, hook)
    losses += train(model)
    return losses, buckets


def copied_and_pickled() -> None:
    if HOOK:
        return
    model = DistributedDataParallel(small())
    train(model)
    twin = copy.deepcopy(model)
    again = pickle.load(io.BytesIO(pickle.dumps(model)))
    for other in (twin, again):
        assert len(train(other)) == STEPS


def abandoned() -> None:
    """A backward pass ends in the middle on all ranks, and training goes on."""
    torch.manual_seed(3)
    module = small()
    model = wrap(module, BRAID)
    train(model)
    handle = module[1].register_full_backward_hook(_interrupt)
    try:
        images, labels = batch(0)
        functional.cross_entropy(model(images), labels).backward()
        raise AssertionError("the backward pass went through")
    except KeyError:
        pass
    handle.remove()
    try:
        assert all(loss == loss for loss in train(model))
    except RuntimeError as error:
        # DDP itself refuses to go on, if it does.
        assert "finished reduction in the prior iteration" in str(error)


def _interrupt(*_: Any) -> None:
    raise KeyError("interrupted on purpose")


def changing_parameters() -> None:
    """One state for two models: the promise cannot be kept, and is taken back cleanly."""
    if not HOOK:
        return
    models = [DistributedDataParallel(small(), process_group=BRAID) for _ in range(2)]
    state = DDPHookState(models[0])
    for model in models:
        model.register_comm_hook(state, braid.torch.ddp_hook)
    train(models[0])
    assert planned(models[0]) == 4
    said = len(WARNINGS.texts)
    train(models[1])
    train(models[0])
    assert state._gradients is None
    assert len(WARNINGS.texts) == said + 1 and "other parameters" in WARNINGS.texts[-1]


WAYS = [
    plain, views_of_buckets, large_buckets, static_graph, unused_parameters, accumulated,
    shared_frozen_empty, float64_and_bfloat16, float16, complex_numbers, collective_in_backward,
    joined, joined_without_any_input, joined_among_active, joined_in_a_torch_function_mode, ignored_parameters,
    two_models, subgroup,
    own_hook_is_kept, own_hook_gets_its_buckets, copied_and_pickled, abandoned, changing_parameters,
]  # fmt: skip

braid.torch.register()
dist.init_process_group("braid")
BRAID = dist.distributed_c10d._get_default_group()
# Also where braid-run puts braid in gloo's place.
GLOO = getattr(dist.new_group, "__wrapped__", dist.new_group)(backend="gloo")


def main() -> None:
    done = []
    for way in WAYS:
        if ONLY and way.__name__ not in ONLY:
            continue
        said = len(WARNINGS.texts)
        way()
        if way is not changing_parameters:
            assert len(WARNINGS.texts) == said, (way.__name__, WARNINGS.texts)
        done.append(way.__name__)
        print(way.__name__, flush=True)
    report(done=done)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
