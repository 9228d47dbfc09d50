# SPDX-License-Identifier: Apache-2.0
"""split_group() for braid's groups, and what shrink_group() says of them.

torch splits groups in C++ only. Here a split is a new group, of which only the ranks of its parent
know: so its name, which they agree on, is the parent's with the number of the split.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from torch.distributed import Backend, GroupMember, distributed_c10d

from braid.torch.attach.replacing import replace_everywhere, substitute
from braid.torch.attach.within_nodes import kept_backend, note
from braid.torch.group.process_group import BraidProcessGroup

# torch before that sorts the ranks of a split, and gives None to ranks that are in none.
_KEEPS_ORDER = "backend" in inspect.signature(distributed_c10d.split_group).parameters
_NOT_IN_A_SPLIT = GroupMember.NON_GROUP_MEMBER if _KEEPS_ORDER else None


def wrap_splitting() -> None:
    original = distributed_c10d.split_group
    replace_everywhere("split_group", original, _wrap_split(original))
    shrink = getattr(distributed_c10d, "shrink_group", None)
    if shrink is not None:
        replace_everywhere("shrink_group", shrink, _wrap_shrink(shrink))


def _wrap_split(original: Any) -> Any:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def split_group(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        parent = given.get("parent_pg") or distributed_c10d._get_default_group()
        if not isinstance(parent, BraidProcessGroup):
            return original(*args, **kwargs)
        asked = given.get("backend")
        _check_backend(asked)
        return _split(
            parent, asked, given.get("split_ranks"), given.get("timeout"), given.get("group_desc")
        )

    return split_group


def _check_backend(backend: Any) -> None:
    """The script's "gloo" or "nccl" is braid, too."""
    if backend is not None and substitute(backend) != "braid":
        raise ValueError(
            f"split_group: the backend {backend} is not present in the parent process group, "
            "whose backend is braid"
        )


def _split(
    parent: BraidProcessGroup,
    asked: Any,
    splits: Sequence[Sequence[int]] | None,
    timeout: timedelta | None,
    description: str | None,
) -> Any:
    """The group of this rank; a collective of the parent."""
    mine, place = _own_split(parent, splits)
    number = parent.next_split()
    if mine is None:
        return _NOT_IN_A_SPLIT
    default = distributed_c10d._get_default_group()
    world = distributed_c10d._world
    to_global = {rank: whole for whole, rank in world.pg_group_ranks[parent].items()}
    ranks = [to_global[rank] for rank in mine]
    backend = Backend(kept_backend(asked, ranks, parent) or "braid")
    group, _ = distributed_c10d._new_process_group_helper(
        len(ranks),
        mine.index(parent.getRank()),
        ranks,
        backend,
        world.pg_map[default][1],
        f"{parent.getGroupName()}:split:{number}:{place}",
        timeout=timeout or distributed_c10d._get_default_timeout(backend),
        group_desc=description or f"{parent.getGroupDesc()}:split:{number}",
    )
    world.pg_group_ranks[group] = {whole: rank for rank, whole in enumerate(ranks)}
    note(group, asked, parent)
    return group


def _own_split(
    parent: BraidProcessGroup, splits: Sequence[Sequence[int]] | None
) -> tuple[list[int] | None, int]:
    """The ranks of the split that this rank is in, by their numbers in the parent, and its place
    among the splits. ValueError says what would be right, on all ranks."""
    if not splits:
        raise ValueError("split_ranks cannot be None or empty")
    size = parent.getSize()
    seen: set[int] = set()
    for split in splits:
        if not split:
            raise ValueError("the split group cannot be empty")
        for rank in split:
            if not 0 <= rank < size:
                raise ValueError(
                    f"split_group: rank {rank} is not in the parent group, whose ranks are 0 to "
                    f"{size - 1}"
                )
            if rank in seen:
                raise ValueError(f"split_group: rank {rank} comes twice in {list(splits)}")
            seen.add(rank)
    for place, split in enumerate(splits):
        if parent.getRank() in split:
            return list(split) if _KEEPS_ORDER else sorted(split), place
    return None, 0


def _wrap_shrink(original: Any) -> Any:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def shrink_group(*args: Any, **kwargs: Any) -> Any:
        group = signature.bind(*args, **kwargs).arguments.get("group")
        if isinstance(group or distributed_c10d._get_default_group(), BraidProcessGroup):
            raise TypeError(
                "shrink_group: a process group of the backend braid does not shrink. Make a group "
                "of the ranks that are left with new_group(ranks, use_local_synchronization=True), "
                "or destroy_process_group() and init_process_group() among them."
            )
        return original(*args, **kwargs)

    return shrink_group
