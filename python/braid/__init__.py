# SPDX-License-Identifier: Apache-2.0
"""Gradient communication through braidd.

`braid.Job` is the plain interface and needs nothing but Python; `braid.torch` attaches PyTorch.
Importing this package loads no library: libbraid.so.0 is found and opened by what first needs it.
"""

from __future__ import annotations

from braid._abi import (
    Collective,
    DType,
    Optimizer,
    Reduction,
    StateBits,
    StateSlot,
    Update,
    UpdateAction,
    UpdateFlag,
)
from braid._devices import DeviceMemory
from braid._messages import ANY_RANK
from braid._placing import Link, PlacedItem, Placement, place
from braid._questions import Master, explain, master
from braid._registering import Memory, TensorSpec
from braid._telling import WorkItem, WorkLoad, WorkSpan
from braid._version import __version__
from braid.errors import BraidError
from braid.job import Job

__all__ = [
    "ANY_RANK",
    "BraidError",
    "Collective",
    "DType",
    "DeviceMemory",
    "Job",
    "Link",
    "Master",
    "Memory",
    "Optimizer",
    "PlacedItem",
    "Placement",
    "Reduction",
    "StateBits",
    "StateSlot",
    "TensorSpec",
    "Update",
    "UpdateAction",
    "UpdateFlag",
    "WorkItem",
    "WorkLoad",
    "WorkSpan",
    "__version__",
    "explain",
    "master",
    "place",
]
