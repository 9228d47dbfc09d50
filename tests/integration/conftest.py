# SPDX-License-Identifier: Apache-2.0
"""Clusters that the tests of a file share. After a daemon's death the next test gets a new one."""

import pathlib
import sys
from collections.abc import Callable, Iterator

import pytest
from braid_build import BUILD, IS_BUILT, IS_SANITIZED, REPOSITORY, ran
from cluster_tool import REFUSED
from real_cluster import Cluster
from trainer_process import Trainer, told_of_trainers


# These take longest. Those that run beside each other end together if these begin first.
LONG_FILES = [
    f"test_{name}.py"
    for name in (
        "explain", "packages", "wheel", "updates", "failures", "live_planning", "train", "users", "disagreements",
        "timeline", "registrations", "full_size_loss", "strangers", "polling", "algorithms", "updates_codecs", "codecs",
        "page_browser", "outages",
    )
]  # fmt: skip


# It links, and may have to compile first what has changed since the build.
WHEEL_S = 400


def pytest_configure(config: pytest.Config) -> None:
    for mark in (
        "sanitized: memory or threads can go wrong here; a usual check runs it under the sanitizers, too",
        "transports: of flows and what becomes of them; a check runs it over UCX, too",
        "plain: not this one of such a file: it waits long, for what others of the file do in less time",
    ):
        config.addinivalue_line("markers", mark)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: number for number, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> pathlib.Path:
    """The wheel of the build, in a folder of its own."""
    if not IS_BUILT or IS_SANITIZED:
        pytest.skip("a wheel is made of a plain build (BRAID_BUILD)")
    folder = tmp_path_factory.mktemp("wheel")
    folder.chmod(0o755)  # other users install it
    command = [REPOSITORY / "packaging" / "wheel" / "build", "--build", BUILD, "--output", folder]
    done = ran([*command, "--python", sys.executable], timeout=WHEEL_S)
    if "run scripts/setup" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    assert done.stdout.strip() == str(made)
    return made


@pytest.fixture(scope="module")
def _clusters() -> Iterator[dict[tuple, Cluster]]:
    made: dict[tuple, Cluster] = {}
    yield made
    for cluster in made.values():
        cluster.stop()


@pytest.fixture
def cluster_of(_clusters) -> Iterator[Callable[..., Cluster]]:
    """cluster_of(nodes, *settings): a running cluster with these daemons."""
    used: list[Cluster] = []

    def get(nodes: int, *settings: str) -> Cluster:
        key = (nodes, settings)
        cluster = _clusters.get(key)
        if cluster is None or not all(node.is_alive() for node in cluster.nodes):
            if cluster is not None:
                cluster.stop()
            for other in list(_clusters):  # one at a time: the machine is small
                _clusters.pop(other).stop()
            cluster = _clusters[key] = Cluster(nodes, settings)
        used.append(cluster)
        return cluster

    yield get
    for cluster in used:
        for trainer in cluster.trainers:
            if trainer.process.poll() is None:
                trainer.kill()
        cluster.trainers.clear()


def pytest_runtest_setup() -> None:
    Trainer.of_this_test.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call):
    """A test that fails shows what all of its trainers said, and how each ended."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and Trainer.of_this_test and hasattr(report.longrepr, "addsection"):
        report.longrepr.addsection("trainers", told_of_trainers())


def pytest_report_header() -> str:
    return f"braid: {REFUSED or 'namespaces are allowed'}, {'built' if IS_BUILT else 'not built'}"
