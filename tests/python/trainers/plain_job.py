# SPDX-License-Identifier: Apache-2.0
"""braid.Job with nothing but Python: registered tensors, weights, errors."""

from __future__ import annotations

import os
from array import array

from report import report

from braid import (
    DType,
    Job,
    Optimizer,
    Reduction,
    StateSlot,
    TensorSpec,
    Update,
    UpdateAction,
)
from braid.errors import AlreadyExistsError, BraidError, InvalidArgumentError


def floats(view: memoryview) -> list[float]:
    return list(view.cast("f"))


def registered(job: Job) -> None:
    weight, bias = job.register(
        [
            TensorSpec("weight", DType.FLOAT32, 4, backward_order=1),
            TensorSpec("bias", DType.FLOAT32, 2, backward_order=0),
        ]
    )
    for step in range(3):
        ticket = job.submit(weight, step, array("f", [job.rank + step] * 4))
        job.wait(ticket)
        assert job.test(ticket)
        total = sum(rank + step for rank in range(job.world_size))
        assert floats(job.result(ticket)) == [total] * 4
        assert job.result(ticket).readonly
        job.release(ticket)
    memory = job.allocate(8)
    values = memory.view().cast("f")
    for i in range(2):
        values[i] = i + job.rank
    ticket = job.submit(bias, 3, memory, reduction=Reduction.AVERAGE)
    job.wait(ticket, timeout=60)
    mean = sum(range(job.world_size)) / job.world_size
    assert floats(job.result(ticket)) == [i + mean for i in range(2)]
    job.release(ticket)
    job.free(memory)


def updated(job: Job) -> None:
    """SGD on weights that the daemons keep."""
    weights = job.register([TensorSpec("kept", DType.FLOAT32, 3, 0, planned=True, state_slots=1)])[0]

    def ask(step: int, values: array | None, update: Update) -> list[float]:
        ticket = job.submit(weights, step, values, reduction=Reduction.AVERAGE, update=update)
        job.wait(ticket)
        result = floats(job.result(ticket))
        job.release(ticket)
        return result

    assert ask(0, array("f", [1, 2, 3]), Update(action=UpdateAction.LOAD)) == [1, 2, 3]
    sgd = {"optimizer": Optimizer.SGD, "learning_rate": 0.5}
    gradient = array("f", [2 * job.rank / (job.world_size - 1)] * 3)
    assert ask(1, gradient, Update(action=UpdateAction.APPLY, count=1, **sgd)) == [0.5, 1.5, 2.5]
    assert ask(2, gradient, Update(action=UpdateAction.ESTIMATE, count=2, **sgd)) == [0, 1, 2]
    assert ask(3, gradient, Update(action=UpdateAction.PUSH, count=2, **sgd)) == []
    assert ask(4, None, Update(action=UpdateAction.FETCH, slot=StateSlot.WEIGHTS)) == [0, 1, 2]
    memory = job.allocate(12)
    repeated = job.repeated_update(weights, memory)
    repeated.update.learning_rate = 0.25
    for step in (5, 6):
        for i in range(3):
            memory.view().cast("f")[i] = 4
        repeated.update.count = step - 2
        ticket = repeated.submit(step)
        job.wait(ticket)
        assert floats(job.result(ticket)) == [i - (step - 4) for i in range(3)]
        job.release(ticket)
    job.free(memory)


def wrong(job: Job) -> None:
    for call, kind in (
        (lambda: job.register([TensorSpec("bias", DType.FLOAT32, 2)]), AlreadyExistsError),
        (lambda: job.wait(987654321), BraidError),
        (lambda: job.submit(0, 100, memoryview(b"12345678")[::2]), InvalidArgumentError),
        (lambda: job.submit(0, 100, array("f", [1] * 4), update=Update()), InvalidArgumentError),
        # Less than the tensor's four floats, and what would be read as others.
        (lambda: job.submit(0, 100, array("f", [1] * 3)), InvalidArgumentError),
        (lambda: job.submit(0, 100, array("d", [1] * 4)), InvalidArgumentError),
        (lambda: job.submit(0, 100, b"abc"), InvalidArgumentError),
    ):
        try:
            call()
        except kind as error:
            assert str(error)
        else:
            raise AssertionError("an error was expected")


def main() -> None:
    job = Job(
        os.environ["BRAID_JOB"],
        int(os.environ["RANK"]),
        int(os.environ["WORLD_SIZE"]),
        master_address=os.environ["MASTER_ADDR"],
        timeout=60,
    )
    with job:
        registered(job)
        updated(job)
        wrong(job)
    job.close()
    try:
        job.submit(0, 0)
    except InvalidArgumentError as error:
        report(done="closed" in str(error))


if __name__ == "__main__":
    main()
