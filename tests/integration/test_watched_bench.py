# SPDX-License-Identifier: Apache-2.0
"""bench/watched: daemons that are watched beside daemons that are not."""

import json
import subprocess

import pytest
from braid_build import BUILD, REPOSITORY
from real_cluster import needs_daemons

pytestmark = needs_daemons


def watched(*options: str) -> subprocess.CompletedProcess:
    argv = [REPOSITORY / "bench" / "watched", "--build", BUILD, *options]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)


def test_both_sides_are_measured_in_turns(tmp_path):
    file = tmp_path / "figures.json"
    done = watched("--sizes", "1000,64KiB", "--repeats", "2", "--bytes-a-run", "20000", "--scrape-seconds", "0.05",
                   "--unwatched", "log.level=error", "--json", file)  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    assert {size: len(pairs) for size, pairs in figures["seconds"].items()} == {"1000": 2, "65536": 2}
    assert all(seconds > 0 for pairs in figures["seconds"].values() for pair in pairs for seconds in pair)
    assert figures["scrapes"] > 0
    assert f"/metrics was fetched {figures['scrapes']} times" in done.stdout


@pytest.mark.parametrize("options, error", [
    (["--unwatched", "metrics.prot=1"], "metrics.prot"),
    (["--sizes", "3"], "sizes are multiples of the 4 bytes of a float32"),
    (["--repeats", "0"], "argument --repeats"),
])
def test_what_makes_no_sense_is_named(options, error):
    done = watched(*options)
    assert done.returncode != 0 and error in done.stderr
