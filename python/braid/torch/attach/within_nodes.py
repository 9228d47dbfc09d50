# SPDX-License-Identifier: Apache-2.0
"""Process groups that keep NCCL, for which braid stands in elsewhere: those whose ranks are all on one
node. NCCL's way there is NVLink, which is faster than the memory that ranks share with a daemon.

All ranks of a group decide alike. The default group goes by what the launcher says. Others go by what
the ranks of the default group have told each other, of their nodes, through its store.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Sequence
from typing import Any

import torch.distributed as dist
from torch.distributed import DistBackendError, GroupMember

from braid import BraidError
from braid.torch.attach.replacing import names_of
from braid.torch.group.launched import local_size, number_of
from braid.torch.group.nodes import identity_of_node
from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.group.stores import key_comes
from braid.torch.operations import devices
from braid.torch.operations.failures import as_distributed

_log = logging.getLogger("braid")
# What torch takes where GPUs are there and nobody says which backend.
_CHOICE_OF_TORCH = "cpu:gloo,cuda:nccl"
_NO_NCCL = "no NCCL"

# Which backends scripts have asked for instead of braid, by the group that they got.
_asked: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
# By default group, the nodes of the ranks that were looked up.
_nodes: weakref.WeakKeyDictionary[Any, dict[int, str]] = weakref.WeakKeyDictionary()


def default_keeps_nccl(asked: Any, world_size: int | None) -> bool:
    """Whether the default group does. `world_size` is what the script says; None or -1: nothing."""
    if not (_asks_for_nccl(asked or _CHOICE_OF_TORCH) and _has_nccl()):
        return False
    if world_size in (None, -1):
        world_size = number_of("WORLD_SIZE")
    return world_size is not None and world_size == local_size()


def note_default(asked: Any, *, keeps_nccl: bool) -> None:
    """The default group was made, for a script that asked for this backend. Tells the other ranks this
    one's node."""
    group = GroupMember.WORLD
    if keeps_nccl and group.rank() == 0:
        _tell(group.size())
    if isinstance(group, BraidProcessGroup):
        note(group, asked or _CHOICE_OF_TORCH)
        node = identity_of_node(group).hex() if _has_nccl() else _NO_NCCL
        group.get_group_store().set(_key(group.rank()), node)


def note(group: Any, asked: Any, parent: Any = None) -> None:
    """A group was made, for a script that asked for this backend; without one as in kept_backend()."""
    if isinstance(group, BraidProcessGroup):
        _asked[group] = _asked_of(asked, parent)


def kept_backend(asked: Any, ranks: Sequence[int] | None, parent: Any = None) -> str | None:
    """What a group among these ranks of the default group (None: all) is made of, if it keeps NCCL.

    Without a backend it takes that of `parent`, or of the default group.
    """
    default = GroupMember.WORLD
    asked = _asked_of(asked, parent)
    if default is None or not (_asks_for_nccl(asked) and _has_nccl()):
        return None
    among = range(default.size()) if ranks is None else ranks
    if isinstance(default, BraidProcessGroup):
        keeps = _share_a_node(default, among)
    else:
        keeps = default.size() == local_size()
    if keeps and default.rank() == min(among):
        _tell(len(among))
    return asked if keeps else None


def _share_a_node(default: BraidProcessGroup, ranks: Sequence[int]) -> bool:
    """As a rank of them sees it. What others say does not count: they get no group."""
    if default.rank() not in ranks:
        return False
    mine = _node_of(default, default.rank())
    return mine != _NO_NCCL and all(_node_of(default, rank) == mine for rank in ranks)


def _node_of(default: BraidProcessGroup, rank: int) -> str:
    known = _nodes.setdefault(default, {})
    if rank not in known:
        store = default.get_group_store()
        end = time.monotonic() + default.operation_timeout.total_seconds()
        try:
            comes = key_comes(store, _key(rank), end, default.engine.job.check)
        except BraidError as error:
            raise as_distributed(error) from error
        if not comes:
            raise DistBackendError(
                f"braid: rank {rank} does not say which node it is on: start all ranks alike, with "
                "braid-run or with BRAID_ENABLE=1"
            )
        known[rank] = store.get(_key(rank)).decode()
    return known[rank]


def _asked_of(asked: Any, parent: Any) -> str:
    return str(asked or _asked.get(parent or GroupMember.WORLD, ""))


def _asks_for_nccl(asked: Any) -> bool:
    return "nccl" in names_of(asked)


def _has_nccl() -> bool:
    return dist.is_nccl_available() and devices.cuda.is_there()


def _key(rank: int) -> str:
    return f"node of rank {rank}"


def _tell(size: int) -> None:
    _log.info("a process group of %d ranks, all on one node, keeps NCCL", size)
