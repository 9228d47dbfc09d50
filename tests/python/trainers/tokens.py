# SPDX-License-Identifier: Apache-2.0
"""What is left in torch's store of the tokens of the groups that were made: `tokens.py FILE`, for a file store."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from typing import Any

import torch.distributed as dist
from report import report

import braid.torch  # noqa: F401
from braid.torch.group.stores import underlying

RANK = int(os.environ["RANK"])
_token_hex = secrets.token_hex
tokens: list[str] = []


def recorded_token(nbytes: int) -> str:
    tokens.append(_token_hex(nbytes))
    return tokens[-1]


def tokens_in(store: Any) -> list[str]:
    """Keys whose values hold a token."""
    values = {key: store.get(key).decode(errors="replace") for key in store.list_keys()}
    return [key for key, value in values.items() if any(token in value for token in tokens)]


def make_groups() -> None:
    evens = dist.new_group([0])
    both = dist.new_group([0, 1])
    dist.barrier(group=both)
    dist.destroy_process_group(both)
    dist.barrier(group=dist.new_group([0, 1]))
    dist.barrier()
    del evens


def main() -> None:
    secrets.token_hex = recorded_token
    dist.init_process_group("braid")
    make_groups()
    left: list[str] = []
    if RANK == 0:
        assert len(tokens) == 4, tokens
        left = tokens_in(underlying(dist.distributed_c10d._get_default_store()))
    dist.barrier()
    dist.destroy_process_group()

    path = sys.argv[1]
    store = dist.FileStore(path, 2)
    dist.init_process_group("braid", store=store, rank=RANK, world_size=2)
    dist.barrier()
    mode = stat.S_IMODE(os.stat(path).st_mode)
    report(left=left, mode=mode)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
