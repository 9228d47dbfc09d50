# SPDX-License-Identifier: Apache-2.0
"""split_group(), by a name that was imported before braid was there, and shrink_group()."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from report import report
from torch.distributed import split_group

import braid.torch


def total(group: Any) -> float:
    tensor = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(tensor, group=group)
    return tensor.item()


def refusals() -> list[str]:
    texts = []
    calls = [
        lambda: split_group(split_ranks=[[0, 1], [1, 2]]),
        lambda: split_group(split_ranks=[[0, 4]]),
        lambda: split_group(split_ranks=[[]]),
        lambda: split_group(split_ranks=[]),
    ]
    if hasattr(dist.distributed_c10d, "shrink_group"):
        calls.append(lambda: dist.distributed_c10d.shrink_group([3]))
    for call in calls:
        try:
            call()
        except (TypeError, ValueError) as error:
            texts.append(str(error))
    return texts


def main() -> None:
    braid.torch.enable()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    half = split_group(split_ranks=[[1, 0], [2, 3]])
    sums = [total(half)]
    backends = [dist.get_backend(half)]
    again = split_group(dist.group.WORLD, [[0, 1], [2, 3]], group_desc="mine")
    sums.append(total(again))
    described = again.group_desc
    # A split's own: the other half does not come.
    if rank < 2:
        alone = split_group(half, [[0], [1]])
        sums.append(total(alone))
    one = split_group(split_ranks=[[0, 2, 3]])
    is_member = one not in (None, dist.GroupMember.NON_GROUP_MEMBER)
    if is_member:
        sums.append(total(one))
    # A group of all is made as ever afterwards.
    sums.append(total(dist.new_group()))
    report(
        sums=sums, backends=backends, described=described, is_member=is_member,
        half=[dist.get_group_rank(half, rank), dist.get_process_group_ranks(half)],
        refusals=refusals(), name=half.group_name,
    )  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
