# SPDX-License-Identifier: Apache-2.0
"""Plans over neighbouring gradients as one tensor, beside plans over single gradients: by the simulator."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cluster_runs import REPOSITORY, once

torch = pytest.importorskip("torch")
pytestmark = once

# A step of K-FAC is no trace of gradients.
TRACES = sorted(set((REPOSITORY / "traces").glob("*.json")) - set((REPOSITORY / "traces").glob("*_kfac.json")))
BRAIDCTL = REPOSITORY / "build" / "release" / "bin" / "braidctl"
# Seconds of a message and of a byte: 10 Gbit/s near and far, 100 Gbit/s, 2 Gbit/s.
NETWORKS = ((2e-5, 8e-10), (1e-4, 8e-10), (2e-5, 8e-11), (5e-5, 4e-9))
WORKERS = "2,4,16"
# As recorded, and so that all gradients travel in about the time of the backward pass, at two workers and the first
# network: then each tensor that comes later is seen in the iteration.
PACES = (None, 1.0, 4.0)
WORSE_AT_MOST = 1.01


def paced(trace: dict[str, Any], pace: float | None) -> dict[str, Any]:
    result = {key: trace[key] for key in ("names", "numel", "tb", "forward_seconds") if key in trace}
    if pace is not None:
        factor = pace * 4 * sum(trace["numel"]) * NETWORKS[0][1] / sum(trace["tb"])
        result["tb"] = [seconds * factor for seconds in trace["tb"]]
        result["forward_seconds"] = sum(result["tb"]) / 2
    return result


def coarse(trace: dict[str, Any], bytes_min: int) -> dict[str, Any]:
    """The trace of the tensors that braid makes of its gradients."""
    from braid.torch.ddp.planned_tensors import Gradient, members_of

    parameters = [torch.empty(numel, device="meta") for numel in trace["numel"]]
    times = {id(parameter): seconds for parameter, seconds in zip(parameters, trace["tb"])}
    named = list(zip(trace["names"], parameters))
    members = members_of([Gradient(name, p, torch.float32) for name, p in reversed(named)], bytes_min)
    rows = [
        (member.name, member.travels, sum(times[id(gradient.parameter)] for gradient in member.gradients))
        for member in reversed(members)
    ]
    return trace | dict(zip(("names", "numel", "tb"), map(list, zip(*rows))))


def iterations(path: Path, trace: dict[str, Any], network: tuple[float, float], streams: int) -> dict[Any, float]:
    """The iteration by number of workers, with the best plan."""
    path.write_text(json.dumps(trace))
    alpha, beta = map(str, network)
    done = subprocess.run(
        [str(BRAIDCTL), "simulate", "--trace", str(path), "--algorithm", "ring", "--alpha", alpha, "--beta", beta,
         "--workers", WORKERS, "--planners", "exact,streams", "--update", "sync", "--streams", str(streams),
         "--format", "json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    best: dict[Any, float] = {}
    for row in json.loads(done.stdout):
        workers = row["workers"]
        best[workers] = min(best.get(workers, float("inf")), row["iteration_seconds"])
    return best


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_plans_are_no_worse_for_it(path, pace, tmp_path):
    """With a hundredth of the model as the smallest tensor: what is measured beside that is what a call costs there."""
    from braid.torch.ddp.tensor_sizes import TENSORS_OF_A_MODEL

    trace = paced(json.loads(path.read_text()), pace)
    merged = coarse(trace, 4 * sum(trace["numel"]) // TENSORS_OF_A_MODEL)
    assert len(merged["numel"]) < len(trace["numel"])
    for network in NETWORKS:
        for streams in (1, 4):
            single = iterations(tmp_path / "trace.json", trace, network, streams)
            fewer = iterations(tmp_path / "trace.json", merged, network, streams)
            for workers, seconds in single.items():
                assert fewer[workers] <= WORSE_AT_MOST * seconds, (network, streams, workers)
