# SPDX-License-Identifier: Apache-2.0
"""What launchers say of the ranks that they have started."""

from __future__ import annotations

import os

# Where torchrun, Open MPI, MPICH and srun say how many ranks this node has; srun's is no number where
# there are several nodes.
LOCAL_SIZES = (
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_STEP_TASKS_PER_NODE",
)


def number_of(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdecimal() else None


def local_size() -> int | None:
    """How many ranks the launcher has started on this node."""
    name = next((each for each in LOCAL_SIZES if each in os.environ), "")
    return number_of(name)
