# SPDX-License-Identifier: Apache-2.0
"""Records how long a model's backward pass takes, gradient by gradient: a trace for the planner.

    from braid.torch import trace

    trace.save(trace.record(model, lambda: criterion(model(images), labels)), "model.json")

    python -m braid.torch.trace --model 'torchvision.models:resnet50()' --input 8,3,224,224

Index 0 of every list is the first layer: the gradient that is ready last. `tb` is the time from the
gradient before it in the backward pass (of the layer behind) to its own, `forward_seconds` that of
the forward pass; both are medians over the recorded steps, in seconds. Times are of one process
without communication: record the model itself, not one wrapped in DistributedDataParallel.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from braid import __version__
from braid._command_line import Parser

_DIGITS = 9


def record(
    model: torch.nn.Module,
    step: Callable[[], torch.Tensor],
    *,
    steps: int = 10,
    warmup: int = 3,
    samples: int = 3,
    name: str | None = None,
) -> dict[str, Any]:
    """Runs `step`, the forward pass up to the loss, and its backward pass; returns the trace.

    `steps` runs count, after `warmup` ones that do not; the last `samples` are kept one by one.
    Gradients are thrown away. ValueError says what about the model or the step makes no trace.
    """
    if steps < 1 or warmup < 0:
        raise ValueError(f"{steps} steps after {warmup}: at least one is needed")
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    if not named:
        raise ValueError("the model has no parameter that requires a gradient: nothing is reduced")
    recorder = _Recorder([parameter for _, parameter in named])
    try:
        runs = [recorder.run(step, model) for _ in range(warmup + steps)][warmup:]
    finally:
        recorder.close()
        model.zero_grad(set_to_none=True)
    return _trace(name or type(model).__name__, named, runs, samples)


def save(trace: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes a trace as JSON, one list per line."""
    lines = []
    for key, value in trace.items():
        if key == "samples":
            samples = ",\n".join("  " + _compact(sample) for sample in value)
            lines.append(f' "samples": [\n{samples}\n ]' if value else ' "samples": []')
        else:
            lines.append(f" {json.dumps(key)}: {_compact(value)}")
    Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n")


class _Run:
    """One step: seconds of the forward pass, and when each gradient was ready in the backward."""

    def __init__(self, forward_seconds: float, ready: dict[int, float]) -> None:
        self.forward_seconds = forward_seconds
        self.ready = ready


class _Recorder:
    """Notes when gradients are ready, by the index of their parameter."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        self._cuda = any(parameter.is_cuda for parameter in parameters)
        self._marks: dict[int, Any] = {}
        self._handles = [
            parameter.register_post_accumulate_grad_hook(self._note(index))
            for index, parameter in enumerate(parameters)
        ]

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()

    def run(self, step: Callable[[], torch.Tensor], model: torch.nn.Module) -> _Run:
        model.zero_grad(set_to_none=True)  # Accumulating onto old gradients would cost time.
        self._marks.clear()
        begin = self._now()
        loss = step()
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or loss.grad_fn is None:
            raise ValueError(
                "the step must return the loss: one number that depends on the parameters; "
                f"it returned {_described(loss)}"
            )
        middle = self._now()
        loss.backward()
        if self._cuda:
            torch.cuda.synchronize()
        ready = {index: self._between(middle, mark) for index, mark in self._marks.items()}
        return _Run(self._between(begin, middle), ready)

    def _note(self, index: int) -> Callable[[torch.Tensor], None]:
        def note(_: torch.Tensor) -> None:
            self._marks[index] = self._now()

        return note

    def _now(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        # The host runs ahead of the device: its own clock would measure launches.
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _between(self, begin: Any, end: Any) -> float:
        return begin.elapsed_time(end) / 1e3 if self._cuda else end - begin


def _trace(
    model: str, named: list[tuple[str, torch.Tensor]], runs: list[_Run], samples: int
) -> dict[str, Any]:
    for index, (name, _) in enumerate(named):
        missed = sum(index not in run.ready for run in runs)
        if missed:
            raise ValueError(
                f"parameter '{name}' got no gradient in {missed} of {len(runs)} steps: a plan is "
                "for parameters that are reduced in every step; freeze it (requires_grad_(False)) "
                "or use it"
            )
    # Neighbours may change places from step to step: their usual moments decide.
    moments = [statistics.median(run.ready[i] for run in runs) for i in range(len(named))]
    order = sorted(range(len(named)), key=lambda i: -moments[i])
    gaps = [_gaps(run, order) for run in runs]
    kept = list(enumerate(zip(runs, gaps)))[-samples:] if samples > 0 else []
    return {
        "model": model,
        "names": [named[i][0] for i in order],
        "numel": [named[i][1].numel() for i in order],
        "tb": [_rounded(statistics.median(gap[i] for gap in gaps)) for i in range(len(order))],
        "dtype": _dtype(named),
        "forward_seconds": _rounded(statistics.median(run.forward_seconds for run in runs)),
        "samples": [
            {
                "rank": int(os.environ.get("RANK", "0")),
                "step": step,
                "forward_seconds": _rounded(run.forward_seconds),
                "tb": [_rounded(seconds) for seconds in gap],
            }
            for step, (run, gap) in kept
        ],
    }


def _gaps(run: _Run, order: list[int]) -> list[float]:
    """Seconds from each gradient's predecessor in the backward pass, first layer first."""
    moments = [run.ready[index] for index in order]
    behind = [*moments[1:], 0.0]
    return [max(0.0, moment - before) for moment, before in zip(moments, behind)]


def _dtype(named: list[tuple[str, torch.Tensor]]) -> str:
    """The element type of most of the bytes."""
    nbytes: Counter[str] = Counter()
    for _, parameter in named:
        nbytes[str(parameter.dtype).removeprefix("torch.")] += parameter.nbytes
    return nbytes.most_common(1)[0][0]


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.{_DIGITS}g}")


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _described(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return f"a {type(value).__name__}"
    grad = "" if value.grad_fn is not None else " that depends on no parameter"
    return f"a tensor of shape {tuple(value.shape)}{grad}"


def _step_of(model: torch.nn.Module, shape: list[int], below: int) -> Callable[[], torch.Tensor]:
    """A forward pass on made-up input, with a loss that every output has a part in."""
    generator = torch.Generator().manual_seed(1)
    if below:
        given = torch.randint(below, shape, generator=generator)
    else:
        given = torch.randn(shape, generator=generator)

    def step() -> torch.Tensor:
        outputs = _floats(model(given))
        if not outputs:
            raise ValueError("the model's output holds no floating-point tensor to make a loss of")
        return sum(output.float().square().mean() for output in outputs)

    return step


def _floats(output: Any) -> list[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        return [output] if output.is_floating_point() else []
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, (list, tuple)):
        return [tensor for part in output for tensor in _floats(part)]
    return []


def _load(where: str) -> Any:
    module, colon, expression = where.partition(":")
    if not colon:
        raise ValueError(f"--model {where}: MODULE:EXPRESSION is needed, such as net:make_net()")
    sys.path.insert(0, os.getcwd())
    made = eval(expression, vars(importlib.import_module(module)))  # The user's own code.
    is_model = isinstance(made, (torch.nn.Module, tuple))
    return made() if callable(made) and not is_model else made


def _parser() -> Parser:
    parser = Parser(
        prog="python -m braid.torch.trace",
        description="Records a model's backward pass, gradient by gradient, as a trace.",
    )
    parser.add_argument("--version", action="version", version=f"braid.torch.trace {__version__}")
    parser.add_argument(
        "--model", required=True, metavar="MODULE:EXPRESSION",
        help="something that gives a model (then --input says what to feed it), or a pair of a "
        "model and a function that runs it and returns the loss",
    )  # fmt: skip
    parser.add_argument("--input", metavar="N,N,…", help="shape of the model's input")
    parser.add_argument(
        "--below", type=int, default=0, metavar="N", help="the input are integers from 0 to N - 1"
    )
    parser.add_argument("--steps", type=int, default=10, help="steps that count (%(default)s)")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them (%(default)s)")
    parser.add_argument("--samples", type=int, default=3, help="steps to keep (%(default)s)")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch (its own choice)")
    parser.add_argument("--name", help="the model's name in the trace")
    parser.add_argument("--output", default="trace.json", metavar="FILE", help="(%(default)s)")
    return parser


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    try:
        made = _load(options.model)
        if isinstance(made, tuple):
            model, step = made
        elif options.input:
            shape = [int(size) for size in options.input.split(",")]
            model, step = made, _step_of(made, shape, options.below)
        else:
            raise ValueError("the model comes without a step: --input must say what to feed it")
        trace = record(
            model, step, steps=options.steps, warmup=options.warmup, samples=options.samples,
            name=options.name,
        )  # fmt: skip
    except (ValueError, ImportError, AttributeError) as error:
        print(f"trace: {error}", file=sys.stderr)
        return 1
    save(trace, options.output)
    print(
        f"{options.output}: {len(trace['numel'])} gradients, "
        f"forward {trace['forward_seconds'] * 1e3:.1f} ms, backward {sum(trace['tb']) * 1e3:.1f} ms"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
