# SPDX-License-Identifier: Apache-2.0
"""Prints which of PyTorch's tests of torch.distributed pass over gloo, and with how many ranks.

    cd tests/python/torch_suite && python list_gloo.py 2 3 4 > passes-over-gloo.txt

With the newest torch; test_torch_suite.py holds braid to it. What fails once is not in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUN = str(Path(__file__).resolve().parent / "run.py")
TIMES = 3


def passing(ranks: int) -> set[str]:
    command = [sys.executable, RUN, "gloo", "--ranks", str(ranks)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {result["name"] for result in results if result["outcome"] == "passed"}


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]]
    by_ranks = {
        ranks: set.intersection(*(passing(ranks) for _ in range(TIMES))) for ranks in sizes
    }
    for name in sorted(set.union(*by_ranks.values())):
        print(name, *(ranks for ranks in sizes if name in by_ranks[ranks]))


if __name__ == "__main__":
    main()
