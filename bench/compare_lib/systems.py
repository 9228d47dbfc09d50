# SPDX-License-Identifier: Apache-2.0
"""The systems: who starts each, and measures one repeat of one case."""

import argparse

from . import mpi
from .braid_system import Braid
from .cluster import Cluster
from .torch_systems import BraidThroughTorch, launch_gloo
from .workers import Workers


def make(name: str, cluster: Cluster, options: argparse.Namespace):
    """start(), measure(case), close(); the first two raise SystemFailed."""
    if braid := options.installations.get(name):
        kind = BraidThroughTorch if options.through == "torch" else Braid
        return kind(name, cluster, options, braid)
    return Workers(name, cluster, options, launch_gloo if name == "gloo" else mpi.launch)
