# SPDX-License-Identifier: Apache-2.0
"""ShardedOptimizer's manners: what it waits for, takes over and refuses; on ranks that are threads."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.once

from in_process import run_ranks  # noqa: E402
from thread_runs import assert_close, gradient, values_of  # noqa: E402

MODEL = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).double()
RANKS = 3


def begin(group: Any, kind: Any = torch.optim.AdamW, **options: Any) -> tuple[list[Any], Any]:
    from braid.torch import ShardedOptimizer

    parameters = list(copy.deepcopy(MODEL).parameters())
    return parameters, ShardedOptimizer(parameters, kind, **{"lr": 0.1, **options}, process_group=group)


def on_mean(kind: Any, steps: int, ranks: int = RANKS, lr: float = 0.1, clip: float = 0, **options: Any) -> list[Any]:
    """torch's optimizer on the mean of all ranks' gradients, each clipped by itself."""
    parameters = list(copy.deepcopy(MODEL).parameters())
    optimizer = kind(parameters, lr=lr, **options)
    for step in range(steps):
        of_ranks = []
        for rank in range(ranks):
            for parameter in parameters:
                parameter.grad = gradient(step, rank, parameter)
            if clip:
                torch.nn.utils.clip_grad_norm_(parameters, clip)
            of_ranks.append([parameter.grad for parameter in parameters])
        for parameter, gradients in zip(parameters, zip(*of_ranks)):
            parameter.grad = sum(gradients) / ranks
        optimizer.step()
    return parameters


def test_local_gradients_may_be_clipped():
    def work(group: Any, _: Any) -> list[Any]:
        parameters, optimizer = begin(group)
        for step in range(6):
            for parameter in parameters:
                parameter.grad = gradient(step, group.rank(), parameter)
            torch.nn.utils.clip_grad_norm_(parameters, 0.7)
            optimizer.step()
        return values_of(parameters)

    for mine in run_ranks(RANKS, work):
        assert_close(mine, on_mean(torch.optim.AdamW, 6, clip=0.7))


def test_schedulers_and_groups_are_followed():
    def train(parameters: list[Any], optimizer: Any, gradient_of: Any) -> list[Any]:
        # Cycles the momentum, too.
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[0.2, 0.05], total_steps=10)
        for step in range(10):
            for parameter in parameters:
                parameter.grad = gradient_of(step, parameter)
            optimizer.step()
            schedule.step()
        return values_of(parameters)

    def groups_of(parameters: list[Any]) -> list[dict[str, Any]]:
        return [{"params": parameters[:1], "weight_decay": 0.1}, {"params": parameters[1:], "betas": (0.5, 0.9)}]

    def work(group: Any, _: Any) -> list[Any]:
        from braid.torch import ShardedOptimizer

        parameters = list(copy.deepcopy(MODEL).parameters())
        optimizer = ShardedOptimizer(groups_of(parameters), torch.optim.AdamW, process_group=group)
        return train(parameters, optimizer, lambda step, p: gradient(step, group.rank(), p))

    parameters = list(copy.deepcopy(MODEL).parameters())
    expected = train(
        parameters, torch.optim.AdamW(groups_of(parameters)),
        lambda step, p: sum(gradient(step, rank, p) for rank in range(RANKS)) / RANKS,
    )  # fmt: skip
    for mine in run_ranks(RANKS, work):
        assert_close(mine, expected)


def test_a_closure_gives_the_loss():
    def work(group: Any, _: Any) -> float:
        parameters, optimizer = begin(group)

        def closure() -> float:
            optimizer.zero_grad()
            loss = sum(parameter.square().sum() for parameter in parameters)
            loss.backward()
            return loss.item()

        losses = [optimizer.step(closure) for _ in range(4)]
        return losses[-1] / losses[0]

    assert all(0 < ratio < 0.9 for ratio in run_ranks(2, work))


def test_a_missing_gradient_counts_as_zeros():
    def work(group: Any, _: Any) -> list[Any]:
        parameters, optimizer = begin(group, torch.optim.SGD, momentum=0.9, weight_decay=0.1)
        for step in range(4):
            for place, parameter in enumerate(parameters):
                is_missing = place == 1 and (step == 2 or group.rank() == 0)
                parameter.grad = None if is_missing else gradient(step, group.rank(), parameter)
            optimizer.step()
        return values_of(parameters)

    parameters = list(copy.deepcopy(MODEL).parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.1)
    for step in range(4):
        for place, parameter in enumerate(parameters):
            of_ranks = [gradient(step, rank, parameter) for rank in range(2)]
            if place == 1:
                of_ranks[0].zero_()
                if step == 2:
                    of_ranks[1].zero_()
            parameter.grad = sum(of_ranks) / 2
        optimizer.step()
    for mine in run_ranks(2, work):
        assert_close(mine, parameters)


def test_a_parameter_rests_until_one_rank_has_a_gradient_of_it():
    def work(group: Any, _: Any) -> tuple[list[Any], list[int]]:
        parameters, optimizer = begin(group, weight_decay=0.5)
        seen = []
        for step in range(5):
            for place, parameter in enumerate(parameters):
                has_one = place != 2 or (step >= 3 and group.rank() == 1)
                parameter.grad = gradient(step, group.rank(), parameter) if has_one else None
            optimizer.step()
            seen.append(torch.equal(parameters[2], list(MODEL.parameters())[2]))
        return seen, sorted(optimizer.state_dict()["state"])

    assert run_ranks(2, work) == [([True, True, True, False, False], [0, 1, 2, 3])] * 2


def test_what_is_loaded_and_not_used_yet_is_saved_again():
    parameters = list(copy.deepcopy(MODEL).parameters())
    theirs = torch.optim.AdamW(parameters)
    for parameter in parameters:
        parameter.grad = gradient(0, 0, parameter)
    theirs.step()
    state = copy.deepcopy(theirs.state_dict())

    def work(group: Any, _: Any) -> bool:
        _, optimizer = begin(group)
        optimizer.load_state_dict(state)
        again = optimizer.state_dict()["state"]
        return all(
            torch.equal(torch.as_tensor(value), torch.as_tensor(again[place][name]).to(value.dtype))
            for place, entry in state["state"].items()
            for name, value in entry.items()
        )

    assert run_ranks(2, work) == [True] * 2


def test_parameters_that_somebody_changes_are_taken_over():
    def work(group: Any, _: Any) -> list[float]:
        parameters, optimizer = begin(group, torch.optim.SGD, lr=0.0)
        ends = []
        for change in (lambda p: p.fill_(2.0 + group.rank()), lambda p: p.data.fill_(5.0 + group.rank())):
            for parameter in parameters:
                parameter.grad = torch.zeros_like(parameter)
            optimizer.step()
            with torch.no_grad():
                for parameter in parameters:
                    change(parameter)
            if ends:
                optimizer.reload()
            optimizer.step()
            ends.append(parameters[0].max().item())
        return ends

    assert run_ranks(2, work) == [[2.0, 5.0]] * 2


class Scaler(torch.amp.GradScaler):
    def __init__(self) -> None:
        super().__init__("cpu", init_scale=1024.0, growth_interval=3)


@pytest.mark.parametrize("unscales", [False, True])
def test_with_a_scaler_of_losses_all_ranks_leave_out_a_step(unscales):
    def work(group: Any, _: Any) -> list[Any]:
        from braid.torch import ShardedOptimizer

        parameters = [torch.nn.Parameter(p.detach().float()) for p in MODEL.parameters()]
        optimizer = ShardedOptimizer(parameters, torch.optim.SGD, lr=0.1, process_group=group)
        scaler, seen = Scaler(), []
        for step in range(5):
            before = values_of(parameters)
            factor = float("inf") if step == 2 and group.rank() == 1 else 1.0
            scaler.scale(sum(p.square().sum() for p in parameters) * factor).backward()
            if unscales:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            # With squares the step is 0.8 of what it was.
            seen.append(all(torch.allclose(0.8 * b, p) for b, p in zip(before, parameters)))
            seen.append(all(torch.equal(b, p) for b, p in zip(before, parameters)))
        return seen

    steps = [[True, False]] * 2 + [[False, True]] + [[True, False]] * 2
    assert run_ranks(2, work) == [[seen for step in steps for seen in step]] * 2


def test_modules_wait_for_their_own_parameters_in_their_forward_pass():
    def work(group: Any, world: Any) -> list[bool]:
        from braid.torch import ShardedOptimizer

        model = copy.deepcopy(MODEL)
        optimizer = ShardedOptimizer(
            model.parameters(), torch.optim.SGD, lr=0.1, process_group=group, model=model, overlap_forward=True
        )
        model(torch.ones(1, 4, dtype=torch.float64)).sum().backward()
        before = values_of(list(model.parameters()))
        optimizer.step()
        model[0](torch.ones(1, 4, dtype=torch.float64))
        after = values_of(list(model.parameters()))
        changed = [not torch.equal(a, b) for a, b in zip(before, after)]
        saved = list(model.state_dict().values())
        return [*changed, *(not torch.equal(a, b) for a, b in zip(before, saved))]

    assert run_ranks(2, work) == [[True, True, False, False, True, True, True, True]] * 2


def test_attention_waits_for_what_it_uses_of_its_children():
    from braid.torch.methods.forward_waits import _used_by

    attention = torch.nn.MultiheadAttention(8, 2)
    assert len(_used_by(attention)) == len(list(attention.parameters()))
    assert _used_by(torch.nn.Sequential(attention)) == []


def test_a_model_with_waits_can_be_copied():
    def work(group: Any, _: Any) -> bool:
        from braid.torch import ShardedOptimizer

        model = copy.deepcopy(MODEL)
        optimizer = ShardedOptimizer(
            model.parameters(), torch.optim.SGD, lr=0.1, process_group=group, model=model, overlap_forward=True
        )
        inputs = torch.ones(1, 4, dtype=torch.float64)
        copied, pickled = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
        model(inputs).sum().backward()
        optimizer.step()
        return torch.equal(copied(inputs), pickled(inputs)) and not torch.equal(copied(inputs), model(inputs))

    assert run_ranks(2, work) == [True] * 2


def refused(kind: Any = torch.optim.AdamW, dtype: Any = torch.float32, **options: Any) -> str:
    from braid.torch import ShardedOptimizer

    with pytest.raises((ValueError, TypeError)) as error:
        ShardedOptimizer([torch.nn.Parameter(torch.ones(2, dtype=dtype))], kind, **options)
    return str(error.value)


def test_what_owners_do_not_have_is_refused():
    assert "not as <class 'torch.optim.rmsprop.RMSprop'>" in refused(torch.optim.RMSprop)
    assert 'torch.optim.AdamW or "lion", not as' in refused("adafactor")
    assert "does not have amsgrad=True: the owner keeps two moments" in refused(amsgrad=True)
    assert "does not have maximize=True" in refused(maximize=True)
    assert "does not have capturable=True" in refused(capturable=True)
    assert "does not have differentiable=True" in refused(differentiable=True)
    assert "not of torch.complex64" in refused(dtype=torch.complex64)
    assert "pull is one of full, bf16, not 'int8'" in refused(pull="int8")
    assert "overlap_forward needs the model" in refused(overlap_forward=True)
    assert "Lion: lr and weight_decay are 0 or more" in refused("lion", betas=(0.9, 1.0))
    assert "unexpected keyword argument 'momentum'" in refused(torch.optim.AdamW, momentum=0.9)


def test_what_comes_too_late_is_refused():
    def work(group: Any, _: Any) -> list[str]:
        parameters, optimizer = begin(group, torch.optim.SGD)
        late = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
        optimizer.add_param_group({"params": [late]})
        for parameter in [*parameters, late]:
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        texts = []
        with pytest.raises(RuntimeError) as error:
            optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
        texts.append(str(error.value))
        optimizer.param_groups[0]["momentum"] = 0.9
        with pytest.raises(RuntimeError) as error:
            optimizer.step()
        texts.append(str(error.value))
        return [*texts, f"{late[0].item():.2f}"]

    for groups, momentum, moved in run_ranks(2, work):
        assert "parameters are dealt out to their owners by the first step()" in groups
        assert "it began without momentum, so its owners keep none" in momentum
        assert moved == "0.90"


def test_sparse_gradients_are_refused():
    def work(group: Any, _: Any) -> str:
        from braid.torch import ShardedOptimizer

        embedding = torch.nn.Embedding(5, 2, sparse=True)
        optimizer = ShardedOptimizer(embedding.parameters(), torch.optim.SGD, lr=0.1, process_group=group)
        embedding(torch.tensor([1])).sum().backward()
        with pytest.raises(RuntimeError) as error:
            optimizer.step()
        return str(error.value)

    assert all("does not take sparse gradients" in text for text in run_ranks(2, work))


def test_more_parameters_than_a_job_has_tickets_for_are_refused():
    def work(group: Any, _: Any) -> str:
        from braid.torch import ShardedOptimizer

        parameters = [torch.nn.Parameter(torch.ones(1)) for _ in range(3001)]
        for parameter in parameters:
            parameter.grad = torch.ones(1)
        with pytest.raises(ValueError, match="3001 parameters .* 3000 are the most"):
            ShardedOptimizer(parameters, torch.optim.SGD, lr=0.1, process_group=group).step()
        return "refused"

    assert run_ranks(1, work) == ["refused"]


def test_ranks_that_disagree_are_told():
    def work(group: Any, _: Any) -> str:
        parameters, optimizer = begin(group, lr=0.1 * (1 + group.rank()))
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        with pytest.raises(torch.distributed.DistBackendError) as error:
            optimizer.step()
        return str(error.value)

    assert all("ranks disagree about the update" in text for text in run_ranks(2, work))


class Called:
    """A job, and which of its methods are called from here on."""

    def __init__(self, job: Any) -> None:
        self.names: set[str] = set()
        self._job = job

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        return getattr(self._job, name)


def test_what_comes_back_to_the_cpu_is_waited_for_copied_and_released_in_one_call():
    def work(group: Any, _: Any) -> tuple[set[str], set[str]]:
        parameters, optimizer = begin(group)
        job = group.engine.job = Called(group.engine.job)
        step(optimizer, parameters, group.rank())
        job.names.clear()
        step(optimizer, parameters, group.rank())
        of_update = set(job.names)
        job.names.clear()
        group.allreduce([torch.ones(3)]).wait()
        return of_update, set(job.names)

    def step(optimizer: Any, parameters: list[Any], rank: int) -> None:
        for parameter in parameters:
            parameter.grad = gradient(0, rank, parameter)
        optimizer.step()

    for of_update, of_collective in run_ranks(2, work):
        assert of_update == {"take_briefly"}
        assert of_collective - {"name", "world_size", "allocate", "free"} == {"submit_raw", "take_briefly"}
