# SPDX-License-Identifier: Apache-2.0
"""The ranks of a group that share a node: those that are attached to the same daemon."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import torch
from torch.distributed import PrefixStore

from braid._personal import SYSTEM_SOCKET
from braid.torch.group.creation import create_group
from braid.torch.group.process_group import BraidProcessGroup

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_DIGEST_BYTES = 32


def node_group(group: BraidProcessGroup) -> BraidProcessGroup | None:
    """A group of this rank's node, on all ranks of `group` alike; None where it is alone there."""
    mine = torch.tensor(list(identity_of_node(group)), dtype=torch.uint8)
    of_all = torch.empty(group.size() * _DIGEST_BYTES, dtype=torch.uint8)
    group.all_gather_single(of_all, mine).wait()
    there = [
        rank
        for rank, digest in enumerate(of_all.view(group.size(), _DIGEST_BYTES))
        if torch.equal(digest, mine)
    ]
    prefix = group.next_prefix("node")
    if len(there) == 1:
        return None
    store = PrefixStore(f"braid/{prefix}/{there[0]}", group.get_group_store())
    return create_group(
        store, there.index(group.rank()), len(there), group.operation_timeout, f"node{there[0]}"
    )


def identity_of_node(group: BraidProcessGroup) -> bytes:
    """The same for ranks of one daemon. Containers of one host have names of their own and share the
    daemon's socket; hosts may have the same name."""
    path = group.engine.job.socket_path or os.environ.get("BRAID_SOCKET") or SYSTEM_SOCKET
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else os.uname().nodename
    try:
        status = os.stat(path)
        socket = f"{status.st_dev}:{status.st_ino}"
    except OSError:
        socket = path
    return hashlib.sha256(f"{boot} {socket}".encode()).digest()
