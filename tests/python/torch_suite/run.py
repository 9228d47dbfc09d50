# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own tests of torch.distributed, out of torch's wheel, over gloo or over braid.

    scripts/cluster --loopback --nodes 3 -- python tests/python/torch_suite/run.py braid
    python tests/python/torch_suite/run.py gloo --ranks 3 [--only NAME ...]

Prints a line of JSON for each test: name, outcome (passed, failed, skipped), seconds, and what it
said if it failed. Rank i of a test uses the daemon of the cluster's node i. Over braid the tests
ask for gloo as they come, and get braid as a script does that asks for gloo; with --keep-buckets as
with BRAID_KEEP_BUCKETS=1.

The tests are one class of 285. Importing torch takes longer than most of them, so one process
imports it, forks a process for each test, and that one forks the ranks.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
import unittest
from collections.abc import Iterator
from typing import Any, NamedTuple

PASSED, SKIPPED, FAILED = 0, 1, 2
OUTCOMES = ("passed", "skipped", "failed")
OUTPUT_BYTES_MAX = 12_000
BARRIER_SECONDS = 60


class Running(NamedTuple):
    name: str
    pid: int
    pidfd: int
    output: Any
    began: float


def main() -> None:
    options = parse()
    nodes = nodes_of_cluster()
    if nodes and int(os.environ["RANK"]) != 0:
        return  # One process runs all ranks of all tests.
    ranks = options.ranks or len(nodes)
    if not ranks or (options.system == "braid" and len(nodes) < ranks):
        sys.exit(f"{ranks} ranks need a cluster of as many nodes (see scripts/cluster)")
    # Read by the tests' module when it is imported, and by the tests.
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(ranks), OMP_NUM_THREADS="1")
    for name in ("RANK", "LOCAL_RANK", "MASTER_PORT", "BRAID_ENABLE"):
        os.environ.pop(name, None)
    os.environ["BRAID_KEEP_BUCKETS"] = str(int(options.keep_buckets))
    if not nodes:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    test_class = make_class(options.system, nodes)
    names = [name for name in dir(test_class) if name.startswith("test_")]
    if options.only:
        unknown = sorted(set(options.only) - set(names))
        if unknown:
            sys.exit(f"this torch has no tests of the names {', '.join(unknown)}")
        names = list(options.only)
    # Not in the order of their names: neighbours take equally long and are equally hungry.
    random.Random(1).shuffle(names)
    for result in run_all(test_class, names, options.at_once, options.deadline):
        print(json.dumps(result), flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("system", choices=("gloo", "braid"))
    parser.add_argument("--ranks", type=int, help="ranks of each test (the cluster's nodes)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these tests only")
    parser.add_argument("--keep-buckets", action="store_true", help="DDP keeps its buckets")
    parser.add_argument("--at-once", type=int, default=4, help="tests at the same time (4)")
    parser.add_argument("--deadline", type=float, default=120, help="seconds for each test (120)")
    return parser.parse_args()


def nodes_of_cluster() -> list[dict[str, Any]]:
    folder = os.environ.get("BRAID_CLUSTER_DIR")
    if not folder:
        return []
    with open(os.path.join(folder, "cluster.json"), encoding="utf-8") as file:
        return json.load(file)["nodes"]


def make_class(system: str, nodes: list[dict[str, Any]]) -> type:
    import torch
    from torch.testing._internal.distributed import distributed_test

    if system == "braid":
        import braid.torch

        braid.torch.enable()
        expect_events_of_braid(distributed_test)

    # Ranks that meet between parts of a test get 10 s for it, which a busy machine may need.
    barrier = distributed_test.Barrier
    barrier.sync = classmethod(functools.partial(barrier.sync.__func__, timeout=BARRIER_SECONDS))

    class TorchSuite(
        distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase
    ):
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

        @classmethod
        def _run(cls, rank: int, *arguments: Any, **options: Any) -> None:
            torch.set_num_threads(1)
            if nodes:
                os.environ["BRAID_SOCKET"] = nodes[rank]["socket"]
                os.environ["MASTER_ADDR"] = nodes[0]["address"]
            super()._run(rank, *arguments, **options)

    return TorchSuite


def expect_events_of_braid(module: Any) -> None:
    """The tests look for events where they know the backend. What braid leaves to gloo has gloo's."""
    from braid.torch.operations.profiling import ENDS_IN_ANY_THREAD

    original = module.get_profiling_event

    def get_profiling_event(name: str, *arguments: Any, **options: Any) -> Any:
        events = original(name, *arguments, **options)
        return events or original(name.replace("braid:", "gloo:"), *arguments, **options)

    module.get_profiling_event = get_profiling_event
    if ENDS_IN_ANY_THREAD:
        module.PROFILING_SUPPORTED_BACKENDS.append("braid")


def run_all(
    test_class: type, names: list[str], at_once: int, deadline: float
) -> Iterator[dict[str, Any]]:
    waiting, running = names[::-1], []
    while waiting or running:
        while waiting and len(running) < at_once:
            running.append(start(test_class, waiting.pop()))
        until = min(test.began for test in running) + deadline
        ended, _, _ = select.select(
            [test.pidfd for test in running], [], [], max(0, until - time.monotonic())
        )
        for test in list(running):
            over = time.monotonic() - test.began >= deadline
            if test.pidfd in ended or over:
                running.remove(test)
                yield end(test)


def start(test_class: type, name: str) -> Running:
    output = tempfile.TemporaryFile()
    pid = os.fork()
    if pid == 0:
        code = FAILED
        try:
            os.setsid()  # So that all of the test can be ended.
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            code = run_one(test_class, name)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return Running(name, pid, os.pidfd_open(pid), output, time.monotonic())


def run_one(test_class: type, name: str) -> int:
    result = unittest.TestResult()
    unittest.TestSuite([test_class(name)]).run(result)
    for _, text in result.errors + result.failures:
        print(text)
    if result.errors or result.failures or result.unexpectedSuccesses:
        return FAILED
    return SKIPPED if result.skipped else PASSED


def end(test: Running) -> dict[str, Any]:
    """The result of a test that ended, or has had its time."""
    try:
        # A rank that is left behind must not disturb the next test; one that hangs ends here.
        hung = os.waitid(os.P_PIDFD, test.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        os.killpg(test.pid, signal.SIGKILL)
    except ProcessLookupError:
        hung = False
    _, status = os.waitpid(test.pid, 0)
    os.close(test.pidfd)
    seconds = time.monotonic() - test.began
    code = os.waitstatus_to_exitcode(status)
    outcome = OUTCOMES[code] if 0 <= code < len(OUTCOMES) else "failed"
    result: dict[str, Any] = {"name": test.name, "outcome": outcome, "seconds": round(seconds, 1)}
    if outcome == "failed":
        size = test.output.seek(0, os.SEEK_END)
        test.output.seek(max(0, size - OUTPUT_BYTES_MAX))
        text = test.output.read().decode(errors="replace")
        result["output"] = (f"no end within {seconds:.0f} s\n" if hung else "") + text
    test.output.close()
    return result


if __name__ == "__main__":
    main()
