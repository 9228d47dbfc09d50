# SPDX-License-Identifier: Apache-2.0
"""Makes "braid" a backend of torch.distributed and opens a job for each of its groups."""

from __future__ import annotations

import logging
import os
import secrets
import uuid
from datetime import timedelta

import torch.distributed as dist
from torch.distributed import DistBackendError, PrefixStore, Store

from braid import BraidError, Job, Master, master
from braid.torch.gloo_only import open_to_braid
from braid.torch.process_group import BraidProcessGroup

_log = logging.getLogger("braid")


def register() -> None:
    """After this, init_process_group("braid") works. A second call does nothing."""
    if "braid" not in dist.Backend.backend_list:
        dist.Backend.register_backend("braid", create_group, devices=["cpu", "cuda"])
    open_to_braid()


def create_group(store: Store, rank: int, size: int, timeout: timedelta) -> BraidProcessGroup:
    """What torch calls for each group, on all ranks of it and with ranks 0 … size - 1."""
    name, where, token = _agree_on_job(store, rank)
    seconds = timeout.total_seconds()
    try:
        job = Job(
            name, rank, size, master_address=where.address, master_node=where.node,
            timeout=seconds, token=token,
        )  # fmt: skip
    except BraidError as error:
        raise DistBackendError(
            f"braid: rank {rank} of {size} could not join job {name}: {error}"
        ) from error
    try:
        # The job's name sets this group's keys apart from those of a group before it.
        own_store = PrefixStore(name, store)
        group = BraidProcessGroup(own_store, rank, size, timeout, job)
    except BaseException:
        job.close()
        raise
    if rank == 0:
        _log.info("braid carries a process group of %d ranks: job %s at %s", size, name, where.address)
    return group


def _agree_on_job(store: Store, rank: int) -> tuple[str, Master, str]:
    """The job's name, its master and its token.

    Rank 0 chooses; the name is new each time, so runs and groups never meet by accident, and the
    token is random, so nobody joins who does not have the store.
    """
    # A store may outlive a group: a script that destroys its group and makes it again finds what
    # it wrote before. Every rank comes as often as the others, so the count tells the times apart.
    key = f"braid/job/{store.add(f'braid/arrivals/{rank}', 1)}"
    if rank == 0:
        name = f"{os.environ.get('BRAID_JOB', 'torch')[:200]}-{uuid.uuid4().hex[:12]}"
        where = _choose_master()
        store.set(key, f"{name}\n{where.address}\n{where.node}\n{secrets.token_hex(32)}")
    name, address, node, token = store.get(key).decode().split("\n")
    return name, Master(address, int(node)), token


def _choose_master() -> Master:
    """Rank 0's daemon, as it says itself. MASTER_ADDR may be "localhost" on rank 0, a pod where no
    daemon is, left over from another run, or not set (file://)."""
    if address := os.environ.get("BRAID_MASTER_ADDR"):
        return Master(address, 0)
    try:
        return master()
    except BraidError:
        # Without a daemon the job says so, and the others are not left waiting for this key.
        return Master(os.environ.get("MASTER_ADDR") or "127.0.0.1", 0)
