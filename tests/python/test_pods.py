# SPDX-License-Identifier: Apache-2.0
"""The first job of packaging/kubernetes, from a network of its own, as a pod has it."""

import subprocess

import pytest
from cluster_runs import REPOSITORY, once, run, script

TRAIN = str(REPOSITORY / "packaging" / "kubernetes" / "trainer" / "train.py")
POD = "192.0.2.77"  # of the pod alone: the node knows no way to it
APART = ("unshare", "--net", "sh", "-ec")
TORCHRUN = (
    "ip link set lo up; ip address add {pod}/32 dev lo; exec {variables} {torchrun} --nproc-per-node 2"
    ' --master-addr {pod} --master-port 29500 "$@"'
)


def is_refused() -> bool:
    try:
        return subprocess.run([*APART, "ip link set lo up"], capture_output=True, check=False).returncode != 0
    except FileNotFoundError:
        return True


pytestmark = [once, pytest.mark.skipif(is_refused(), reason="unshare --net, a network of one's own, is refused here")]


def train(variables: str):
    """MASTER_ADDR, as scripts/cluster sets it, is the node; torchrun puts the pod in its place."""
    launcher = (*APART, TORCHRUN.format(pod=POD, variables=f"env {variables}", torchrun=script("torchrun")), "torchrun")
    return run(TRAIN, ranks_per_node=1, launcher=launcher, environment={"BRAID_ENABLE": "1", "STEPS": "5"})


# What says where the coordinator is goes before what the daemon says of itself.
@pytest.mark.parametrize("variables", ["", "BRAID_MASTER_ADDR=$MASTER_ADDR"])
def test_ranks_meet_at_their_node_and_not_at_their_pod(variables):
    done = train(variables)
    assert done.exit_code == 0, done.output
    for rank in range(2):
        assert f"rank {rank} of 2: all models are the same; over braid" in done.output


def test_at_their_pod_there_is_no_daemon():
    done = train(f"BRAID_MASTER_ADDR={POD}")
    assert done.exit_code != 0 and POD in done.output, done.output
