# SPDX-License-Identifier: Apache-2.0
"""The systems: which backend of torch, and which variables, each one's workers get."""

import os
import sys

from ..cluster import Cluster
from ..group import Group
from ..paths import ROOT, VENV_PYTHON, Installation
from ..programs import Program
from . import plan

_BACKENDS = {plan.BRAID: "braid", plan.NCCL: "nccl", plan.NCCL_SOCKETS: "nccl", plan.GLOO: "gloo"}


def python() -> str:
    """The interpreter of a checkout's environment, else the one that runs this: a bundle brings none."""
    return VENV_PYTHON if os.access(VENV_PYTHON, os.X_OK) else sys.executable


def start(system: str, cluster: Cluster, braid: Installation, device: str, timeout_s: float) -> Group:
    """One worker per node, ready for tasks."""

    def launch(variables: dict[str, str]) -> list[Program]:
        return [
            cluster.start(
                node,
                system,
                [python(), "-m", "measure.gpu.worker", _BACKENDS[system], device],
                **variables,
                **_variables(system, node, braid),
            )
            for node in cluster.nodes
        ]

    return Group.of(cluster, launch, len(cluster.nodes), timeout_s)


def _variables(system: str, node, braid: Installation) -> dict[str, str]:
    found = {"BRAID_LIBRARY": braid.library}
    found["PYTHONPATH"] = os.pathsep.join([os.path.join(ROOT, "bench"), braid.python])
    if _BACKENDS[system] == "nccl":
        # NCCL refuses two ranks on one GPU of one host. With different ids it takes them for two hosts, and joins them
        # by sockets (2.27 to 2.30: init.cc compares the host's hash and the GPU).
        found |= {"NCCL_HOSTID": node.name, "NCCL_SOCKET_IFNAME": node.interface, "NCCL_IB_DISABLE": "1"}
    if system == plan.NCCL_SOCKETS:
        found |= {"NCCL_SOCKET_NTHREADS": "2", "NCCL_NSOCKS_PERTHREAD": "8"}
    return found
