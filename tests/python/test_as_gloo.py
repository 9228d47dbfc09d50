# SPDX-License-Identifier: Apache-2.0
"""What PyTorch gives to its own backends works with braid's groups."""

from __future__ import annotations

import re

import pytest
from cluster_runs import COLD, run, script

torch = pytest.importorskip("torch")

import braid.torch  # noqa: E402
from braid.torch import launcher  # noqa: E402
from braid.torch.attach import substitution  # noqa: E402
from braid.torch.autoload import autoload  # noqa: E402
from braid.torch.operations.profiling import ENDS_IN_ANY_THREAD  # noqa: E402


@pytest.mark.parametrize("way", ["by name", "braid-run"])
def test_builtin_hooks_asynchronous_checkpoints_monitored_barriers_and_the_profiler(way):
    way_in = (script("braid-run"),) if way == "braid-run" else None
    results = run("as_gloo.py", nodes=1, ranks_per_node=3, launcher=way_in).expect(3)
    assert [len(result["said"]) for result in results] == [2, 0, 2]
    first, second, third = results
    assert re.search(r"Rank 1 failed to pass monitoredBarrier in 1000 ms", first["said"][0])
    # The third rank may be late for so short a wait, too.
    assert re.search(r"Ranks? 1(, 2)? failed to pass monitoredBarrier", first["said"][1])
    for told, said in zip(first["said"], third["said"]):
        assert "Rank 2 successfully reached monitoredBarrier" in said and told in said
    assert " Timed out " in first["timed_out"] and "1000 ms" in first["timed_out"]
    for result in results:
        assert [event[0] for event in result["events"]] == [
            "braid:all_reduce", "braid:reduce", "braid:all_reduce", "braid:broadcast",
            "braid:all_gather", "braid:reduce_scatter", "braid:barrier",
        ]  # fmt: skip
        shapes = [event[1] for event in result["events"]]
        assert shapes == [[[5, 2]]] * 4 + [[[3]], [[9]], []]
        assert all(event[2] == ENDS_IN_ANY_THREAD for event in result["events"]), "asynchronous"
    # One line for each group, from rank 0.
    assert len(first["told"]) == 3 and "job cluster-" in first["told"][0] and ": 3 ranks" in first["told"][0]
    assert not second["told"] and not third["told"]


def test_the_name_alone_is_enough_where_torch_looks_for_backends():
    if not hasattr(torch.distributed.Backend, "_ensure_backend_registered"):
        pytest.skip("this torch knows no entry points of backends")
    for result in run("unmodified.py", "braid", launcher=COLD).expect(2):
        assert result["got"] == {"braid": ["braid", "gloo", 4.0]}


def test_a_torch_that_is_too_old_is_refused_where_braid_is_asked_for(monkeypatch, capsys):
    monkeypatch.setattr(torch, "__version__", "2.6.0+cpu")
    expected = r"^braid needs torch 2\.7 or later, and this is torch 2\.6\.0\+cpu$"
    for name in ("register", "enable"):
        with pytest.raises(RuntimeError, match=expected):
            getattr(braid.torch, name)
    monkeypatch.setenv("BRAID_ENABLE", "0")  # braid-run sets it: undone at the end.
    with pytest.raises(SystemExit, match="^1$"):
        launcher.main([__file__])
    assert capsys.readouterr().err.startswith("braid-run: braid needs torch 2.7 or later")


def test_a_torch_that_is_too_old_is_left_as_it_is_where_braid_is_switched_on(monkeypatch, caplog):
    monkeypatch.setattr(torch, "__version__", "2.6.0+cpu")
    monkeypatch.setenv("BRAID_ENABLE", "1")
    enabled = []
    monkeypatch.setattr(substitution, "enable", lambda: enabled.append(True))
    autoload()
    assert not enabled
    assert "braid is not in use: braid needs torch 2.7 or later" in caplog.text
