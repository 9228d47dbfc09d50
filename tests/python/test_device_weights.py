# SPDX-License-Identifier: Apache-2.0
"""Optimizers whose weights the daemons update, with parameters on a GPU: gradients go from there, and weights have the
bits of the CPU's way. No GPU is needed: made_up_gpu.py."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from in_process import run_ranks  # noqa: E402
from thread_runs import MODEL, gradient  # noqa: E402

pytestmark = pytest.mark.once
RANKS, STEPS = 2, 6


def sharded(parameters, group, **options):
    from braid.torch import ShardedOptimizer

    return ShardedOptimizer(parameters, torch.optim.AdamW, lr=0.1, process_group=group, **options)


def acco(parameters, group):
    from braid.torch import Acco

    return Acco(parameters, torch.optim.AdamW, lr=0.1, process_group=group)


def delayed(parameters, group, **options):
    from braid.torch import DelayedOptimizer

    return DelayedOptimizer(parameters, lr=0.1, momentum=0.9, worker="rank", process_group=group, **options)


KINDS = {
    "sharded": sharded,
    "acco": acco,
    "od-sgd": lambda parameters, group: delayed(parameters, group, warmup_steps=1),
    "od-sgd dc": lambda parameters, group: delayed(parameters, group, warmup_steps=0, local="dc"),
    "ssd-sgd": lambda parameters, group: delayed(
        parameters, group, method="ssd-sgd", pull_every=2, warmup_steps=1, force=True
    ),
}


class Training:
    def __init__(self, group, kind, put, dtype):
        self.rank, self.put = group.rank(), put
        self.parameters = [torch.nn.Parameter(put(p.detach().to(dtype))) for p in MODEL.parameters()]
        self.optimizer = KINDS[kind](self.parameters, group)

    def step(self, number):
        for place, parameter in enumerate(self.parameters):
            # A rank may have no gradient of a parameter in some step.
            if place == 0 or number % 3 != self.rank:
                parameter.grad = self.put(gradient(number, self.rank, parameter))
            else:
                parameter.grad = None
        self.optimizer.step()
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.fill_(float("nan"))  # It is the script's again.

    def train(self, first=0, last=STEPS):
        for number in range(first, last):
            self.step(number)
        if hasattr(self.optimizer, "finish"):
            self.optimizer.finish()
        return [parameter.detach().clone() for parameter in self.parameters]


def trained(kind, put, dtype):
    return run_ranks(RANKS, lambda group, world: Training(group, kind, put, dtype).train())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_have_the_same_bits_as_through_the_arena(gpu, kind, dtype):
    there, here = trained(kind, gpu.put, dtype), trained(kind, lambda tensor: tensor, dtype)
    for mine, right in zip(there, here):
        assert all(torch.equal(a, b) for a, b in zip(mine, right))
    assert gpu.holds_of == []


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_go_from_the_gpu(gpu, kind):
    """So the test above has compared what it says: each step submits all parameters from there."""
    from braid import UpdateAction

    def work(group, world):
        seen, job = [], group.engine.job
        submit = job.submit_device
        job.submit_device = lambda *arguments, update=None: (
            seen.append(update and update.action) or submit(*arguments, update=update)
        )
        Training(group, kind, gpu.put, torch.float32).train()
        return seen

    updates = {UpdateAction.APPLY, UpdateAction.PUSH, UpdateAction.ESTIMATE}
    for seen in run_ranks(RANKS, work):
        assert sum(action in updates for action in seen) == STEPS * len(list(MODEL.parameters()))


def test_a_step_that_does_not_wait_leaves_the_gradient_to_the_script(gpu):
    """overlap_forward: step() returns before the other rank has submitted."""
    from braid.torch import ShardedOptimizer

    def work(group, world):
        model = torch.nn.Linear(4, 3)
        for parameter in model.parameters():
            parameter.data = gpu.put(parameter.detach())
        optimizer = ShardedOptimizer(
            model.parameters(), torch.optim.SGD, lr=1.0, process_group=group, model=model, overlap_forward=True
        )
        for number in range(3):
            for parameter in model.parameters():
                parameter.grad = gpu.put(gradient(number, group.rank(), parameter))
            if group.rank() == 0 and number == 2:
                optimizer.step()
                for parameter in model.parameters():
                    parameter.grad.fill_(float("nan"))
                group.barrier().wait()
            elif number == 2:
                group.barrier().wait()
                optimizer.step()
            else:
                optimizer.step()
        optimizer.synchronize()
        return [parameter.detach().clone() for parameter in model.parameters()]

    first, second = run_ranks(2, work)
    assert all(torch.equal(a, b) and not a.isnan().any() for a, b in zip(first, second))


def test_state_in_the_middle_of_a_round_of_acco(gpu):
    def run(put):
        def work(group, world):
            training = Training(group, "acco", put, torch.float32)
            for number in range(3):
                training.step(number)
            state = training.optimizer.state_dict()
            again = Training(group, "acco", put, torch.float32)
            with torch.no_grad():
                for mine, other in zip(again.parameters, training.parameters):
                    mine.copy_(other)
            again.optimizer.load_state_dict(state)
            return [training.train(3), again.train(3)]

        return run_ranks(RANKS, work)

    for mine, right in zip(run(gpu.put), run(lambda tensor: tensor)):
        for a, b in zip(mine, right):
            assert all(torch.equal(x, y) for x, y in zip(a, b))
