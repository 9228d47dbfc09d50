# SPDX-License-Identifier: Apache-2.0
"""Opens a job for each process group, which its ranks agree on through torch's store."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
import time
from datetime import timedelta

from torch.distributed import (
    DistBackendError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    PrefixStore,
    Store,
)

from braid import BraidError, Job, Master, master
from braid._questions import name_job
from braid.torch.environment.last_words import begin
from braid.torch.environment.logs import announce
from braid.torch.group.arrivals import Arrivals, printable
from braid.torch.group.gloo import LOOPBACK, host_of, local_address
from braid.torch.group.naming import remember, wanted_name
from braid.torch.group.personal import Decision, decide, follow
from braid.torch.group.process_group import BraidProcessGroup
from braid.torch.group.stores import key_comes, underlying
from braid.torch.group.unheard import tell_unheard

_log = logging.getLogger("braid")
_GIVEN_UP = "given up\n"


def create_group(
    store: Store, rank: int, size: int, timeout: timedelta, label: str | None = None
) -> BraidProcessGroup:
    """What torch calls for each group, on all ranks of it and with ranks 0 … size - 1. Other groups
    than torch's have a `label`."""
    proposal = _Proposal(store, rank, size, timeout, label)
    try:
        job = proposal.join()
    except BraidError as error:
        raise DistBackendError(
            f"braid: rank {rank} of {size} could not join job {proposal.job}: {error}"
            f"{proposal.other_way_to_rank_0(error)}"
        ) from error
    try:
        own_store = PrefixStore(proposal.own_prefix(), store)
        group = BraidProcessGroup(own_store, rank, size, timeout, job)
    except BaseException:
        job.close()
        raise
    begin()
    if rank == 0:
        tell_unheard()
        announce(job.name, size, job.master_address)
    return group


class _Proposal:
    """The job's name, its master and its token, which rank 0 chooses and says through the store, and
    whether the run has daemons of its own, with their key.

    Token and key are random, so runs and groups never meet by accident, whatever their names, and
    nobody joins who did not have the store while the group was made: they do not stay there.
    """

    def __init__(
        self, store: Store, rank: int, size: int, timeout: timedelta, label: str | None
    ) -> None:
        self._store = store
        self._rank = rank
        self._size = size
        self._seconds = timeout.total_seconds()
        self._label = label
        self._arrivals = Arrivals(store, rank, size)
        self._key = f"braid/job/{self._arrivals.number}"
        self._end_key = f"braid/end/{self._arrivals.number}"
        self.job = ""
        self._where = Master("", 0)
        self._token = ""
        self._key_of_run = ""

    def join(self) -> Job:
        """Opens the job. On rank 0 the token then leaves the store: all ranks have read it, or it is
        of no use any more."""
        try:
            if self._rank == 0:
                self._choose()
            self._read()
            job = Job(
                self.job, self._rank, self._size, master_address=self._where.address,
                master_node=self._where.node, timeout=self._seconds, token=self._token,
                while_opening=self._look,
            )  # fmt: skip
        except BaseException as error:
            self._give_up(error)
            if isinstance(error, BraidError):
                self._look()
            raise
        if self._rank == 0:
            self._store.delete_key(self._key)
        return job

    def own_prefix(self) -> str:
        """Sets this group's keys apart from those of a group before it."""
        return f"braid/{hashlib.sha256(self._token.encode()).hexdigest()[:16]}"

    def other_way_to_rank_0(self, error: BraidError) -> str:
        """For the error of a daemon that does not reach rank 0's: the network over which torch does."""
        address = os.environ.get("MASTER_ADDR", "")
        own = local_address(address)
        host = host_of(self._where.address)
        if host not in (address, "") and host in str(error) and own != LOOPBACK:
            return f". torch meets at MASTER_ADDR {address}, which this node reaches from {own}"
        return ""

    def _look(self) -> None:
        """Between the pieces of the wait for the job, which a store that is lost does not end."""
        try:
            if self._rank == 0:
                self._arrivals.look()
            else:
                self._look_for_end()
                self._arrivals.look_for_double()
        except (DistNetworkError, DistStoreError):
            pass
        except DistBackendError as error:
            self._give_up(error)  # Before the others hear that this rank has left the job.
            raise

    def _give_up(self, error: BaseException) -> None:
        """What ends the group on rank 0 ends it on all ranks, with the same words. What ends it on
        another rank ends it on rank 0, or on those who still wait for rank 0."""
        reason = f"{type(error).__name__}: {error}"
        for secret, what in ((self._token, "token"), (self._key_of_run, "cluster key")):
            if secret:
                reason = reason.replace(secret, f"(the job's {what})")
        with contextlib.suppress(Exception):  # The first error is the one to tell.
            if self._rank == 0:
                said = _GIVEN_UP + printable(reason)
                self._store.set(self._end_key, said)
                self._store.set(self._key, said)
            elif not self._store.check([self._end_key]):
                self._arrivals.give_up(reason)

    def _look_for_end(self) -> None:
        """Raises what rank 0 has given up for, of which its daemon need not know."""
        if self._rank != 0 and self._store.check([self._end_key]):
            self._raise_if_given_up(self._store.get(self._end_key).decode(errors="replace"))

    def _raise_if_given_up(self, said: str) -> None:
        if said.startswith(_GIVEN_UP):
            raise DistBackendError(
                f"braid: rank 0 could not make the group that rank {self._rank} of {self._size} "
                f"wants to join ({said.removeprefix(_GIVEN_UP)})"
            )

    def _choose(self) -> None:
        _close_to_others(self._store)
        decision = decide(self._size)
        self.job = _own_name(wanted_name(self._label))
        where = _choose_master()
        lines = (self.job, where.address, str(where.node), secrets.token_hex(32), *decision.lines())
        self._store.set(self._key, "\n".join(lines))

    def _read(self) -> None:
        end = time.monotonic() + self._seconds
        if not key_comes(self._store, self._key, end, self._arrivals.look):
            raise DistBackendError(
                f"braid: rank {self._rank} of {self._size} waited {self._seconds:g} s for rank 0 to "
                "name the group's job in torch's store: rank 0 has not come, or not to braid, or it "
                f"still waits for {self._size} processes (WORLD_SIZE) to reach the store"
            )
        said = self._store.get(self._key).decode()
        self._raise_if_given_up(said)
        self.job, address, node, self._token, *decided = said.split("\n")
        self._where = Master(address, int(node))
        decision = Decision.of_lines(*decided)
        self._key_of_run = decision.run.key if decision.run is not None else ""
        remember(self.job, self._label)
        if self._rank != 0:
            follow(decision)


def _close_to_others(store: Store) -> None:
    """What a file store forgets stays in its file."""
    store = underlying(store)
    if isinstance(store, FileStore):
        try:
            os.chmod(store.path, 0o600)
        except OSError as error:
            _log.warning("the file of torch's store stays open to other users: %s", error)


def _own_name(wanted: str) -> str:
    """A name that no other job on this node has."""
    try:
        return name_job(wanted)
    except BraidError:  # No daemon, as the job itself will say; or one that is too old to know.
        return f"{wanted}-{secrets.token_hex(2)}"


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
