# SPDX-License-Identifier: Apache-2.0
"""Flight records: torch's own analyser reads what braid's ranks have written."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cluster_runs import once, run

torch = pytest.importorskip("torch")
pytest.importorskip("torch.distributed.flight_recorder", reason="this torch has no analyser")
pytestmark = once

RANKS = 4
# The analyser knows torch's own backends by name, and says of others that it does not, without harm.
NOT_TORCHS_OWN = re.compile(r"^unrecognized comm library 'braid' in profiling name .*\n", re.M)


def fly(folder: Path, what: str, **environment: str) -> list[dict]:
    """What each rank reports."""
    prefix = {"TORCH_FR_DUMP_TEMP_FILE": str(folder / "rank_")}
    done = run("flight.py", what, nodes=2, ranks_per_node=2, environment={**prefix, **environment})
    return done.expect(RANKS)


def analysed(folder: Path) -> str:
    argv = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder), "--prefix", "rank_"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return NOT_TORCHS_OWN.sub("", done.stdout + done.stderr)


def record_of(folder: Path, rank: int) -> dict:
    return pickle.loads((folder / f"rank_{rank}").read_bytes())


def test_all_collectives_match(tmp_path):
    fly(tmp_path, "all")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"rank_{rank}" for rank in range(RANKS)]
    assert "error" not in analysed(tmp_path).lower()
    for rank in range(RANKS):
        record = record_of(tmp_path, rank)
        assert record["version"] == "2.10"
        groups = sorted((one["desc"], one["ranks"]) for one in record["pg_config"].values())
        assert ("default_pg", "[0, 1, 2, 3]") in groups
        assert any(ranks == "[0, 1]" for _, ranks in groups) == (rank < 2)
        entries = record["entries"]
        assert {entry["state"] for entry in entries} == {"completed"}
        names = [entry["profiling_name"].removeprefix("braid:") for entry in entries]
        done = {"all_reduce", "broadcast", "reduce", "barrier", "all_gather", "reduce_scatter", "gather", "scatter"}
        assert {*done, "all_to_all"} <= set(names)
        first = entries[names.index("all_reduce")]
        assert (first["input_sizes"], first["input_dtypes"]) == ([[3, 2]], ["float32"])
        (caller,) = [frame for frame in first["frames"] if frame["name"] == "everything"]
        assert Path(caller["filename"]).read_text().splitlines()[caller["line"] - 1].strip() == "dist.all_reduce(one)"
        assert not any("/braid/torch/" in frame["filename"] for frame in first["frames"])
        # Buckets of gradients that are planned: 6 · 8 + 8 + 8 · 3 + 3 elements in each step.
        planned = sum(e["input_sizes"][0][0] for e in entries[-12:] if e["profiling_name"] == "braid:all_reduce")
        assert planned >= 3 * 83


def test_a_rank_that_is_missing_is_named(tmp_path):
    errors = [result["error"] for result in fly(tmp_path, "missing")]
    assert not errors[1] and all("rank 1" in errors[rank] for rank in (0, 2, 3))
    said = analysed(tmp_path)
    assert "missing ranks: {1}" in said and "collective: braid:all_reduce" in said
    failed = record_of(tmp_path, 0)["entries"][-1]
    assert failed["state"] == "scheduled" and failed["input_sizes"] == [[4]]
    assert "rank 1" in failed["error"]
    (missing,) = record_of(tmp_path, 0)["braid"]["missing"]
    assert missing["ranks"] == [1] and [ranks for ranks in missing["nodes"].values()] == [[1]]
    assert missing["record_id"] == failed["record_id"]
    assert missing["collective_seq_id"] == failed["collective_seq_id"]


def test_nothing_is_recorded_where_nobody_wants_it(tmp_path):
    fly(tmp_path, "all", TORCH_FR_BUFFER_SIZE="0")
    assert record_of(tmp_path, 0)["entries"] == []
    assert record_of(tmp_path, 0)["braid"] == {"missing": []}
