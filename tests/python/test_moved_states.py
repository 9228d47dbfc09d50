# SPDX-License-Identifier: Apache-2.0
"""A training whose model and optimizer go from job to job, of other sizes each, through real daemons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cluster_runs import once, run

torch = pytest.importorskip("torch")
pytestmark = once

import global_batches  # noqa: E402

SIZES = (4, 2, 3, 1)  # nodes of one job after the other
STEPS = 10  # of each


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """With what each job has left."""
    path = tmp_path_factory.mktemp("moved")
    for part, nodes in enumerate(SIZES):
        first, last = str(part * STEPS), str((part + 1) * STEPS)
        results = run("moved.py", str(path), first, last, nodes=nodes, ranks_per_node=1).expect(nodes)
        assert all(result["digests"] == results[0]["digests"] for result in results)
    return path


def far(mine: Any, other: Any) -> float:
    """Relative to the norm."""
    return ((mine - other).norm() / other.norm()).item()


@pytest.mark.parametrize("way", global_batches.REFERENCES)
def test_it_goes_on_in_a_job_of_another_size_as_in_one_process(folder, way):
    reference, begun = global_batches.REFERENCES[way](), global_batches.make_model().state_dict()
    for part, nodes in enumerate(SIZES):
        reference.train(range(part * STEPS, (part + 1) * STEPS), nodes)
        saved = torch.load(folder / f"{way}-{(part + 1) * STEPS}.pt", weights_only=True)
        for name, expected in reference.model.state_dict().items():
            assert far(saved["model"][name], expected) < 1e-6 < 0.01 < far(begun[name], expected), (nodes, name)
        states = reference.optimizer.state_dict()["state"]
        assert sorted(saved["optimizer"]["state"]) == sorted(states)
        for place, state in states.items():
            for name, expected in state.items():
                assert far(torch.as_tensor(saved["optimizer"]["state"][place][name]), expected) < 1e-6, (nodes, name)
