# SPDX-License-Identifier: Apache-2.0
"""The inner gloo group: what braid does not carry still has to work in an unmodified script.

Where torch has gloo's lazy start (2.8 and newer) the group is made along with ours: that costs a
few milliseconds and connects to nobody. Before, making a group connects everybody to everybody, so
it is made by the first collective, which all ranks enter.
"""

from __future__ import annotations

import ctypes
import ipaddress
import logging
import os
import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from torch.distributed import PrefixStore, ProcessGroupGloo, Store, Work

from braid import Job
from braid.torch.group.gloo_collectives import GlooCollectives
from braid.torch.group.job_watch import JobWatch
from braid.torch.operations.callbacks import CallbackThreads
from braid.torch.operations.work import BraidWork

_log = logging.getLogger("braid")
LOOPBACK = "127.0.0.1"


class InnerGloo:
    """A gloo group on the job's ranks, over the same store. `was_used`: for anything.
    Any thread may call."""

    def __init__(
        self, store: Store, job: Job, rank: int, size: int, timeout: timedelta,
        callbacks: CallbackThreads,
    ) -> None:  # fmt: skip
        self._store = PrefixStore("braid/gloo", store)
        self._make_gloo = partial(make_gloo, host_of(job.master_address))
        self.watch = JobWatch(job)
        self._collectives = GlooCollectives(self.watch, callbacks, job.name)
        self._rank = rank
        self._size = size
        self._timeout = timeout
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self.was_used = False
        self._group: Any = None
        self._lazy_error: Exception | None = None
        try:
            self._group = self._make(lazy_init=True)
        except TypeError:
            pass  # This torch cannot; ranks run the same torch, so all of them come here.
        except RuntimeError as error:
            # No usable interface, for one. Nobody needs to care until gloo is needed.
            self._lazy_error = error

    def group(self, what: str) -> Any:
        """The group, for a collective that braid does not carry."""
        with self._lock:
            self._tell(what)
            if self._group is None:
                if self._lazy_error is not None:
                    raise RuntimeError(
                        f"{what} needs torch's gloo, which did not start: {self._lazy_error}. "
                        "GLOO_SOCKET_IFNAME names the interface that it should use."
                    ) from self._lazy_error
                self._group = self.watch.see_through(self._make)
            return self._group

    def run(self, what: str, value: Any, start: Callable[[Any], Work]) -> BraidWork:
        """A collective, which `start` begins on the group and whose result is `value`."""
        group = self.group(what)
        name = f"{what} through gloo on rank {self._rank}"
        return self._collectives.start(name, value, self._timeout, lambda: start(group))

    def set_timeout(self, timeout: timedelta) -> None:
        """The timeout of operations that begin from here on. gloo's connections keep their own."""
        with self._lock:
            self._timeout = timeout
            if self._group is not None:
                self._group._set_default_timeout(timeout)

    def close(self) -> None:
        """Lets go of the groups: gloo's threads must not live to see the interpreter end."""
        if os.getpid() != self._pid:
            # In a forked child gloo's threads do not exist, and its destructor would join them.
            if self._group is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._group))
            return
        with self._lock:
            self._collectives.close(self._group)
            self._group = None

    def _tell(self, what: str) -> None:
        if not self.was_used:
            self.was_used = True
            _log.info("%s is not carried by braid; it goes through torch's gloo", what)

    def _make(self, **device_options: Any) -> Any:
        return self._make_gloo(
            self._store, self._rank, self._size, self._timeout, **device_options
        )


def make_gloo(
    master: str, store: Store, rank: int, size: int, timeout: timedelta, **device_options: Any
) -> ProcessGroupGloo:
    """A gloo group on the address from which this node reaches the trainers' or the job's master."""
    options = ProcessGroupGloo._Options()
    options._timeout = timeout
    options._threads = 2
    interface = os.environ.get("GLOO_SOCKET_IFNAME")
    if interface:
        where = {"interface": interface.split(",")[0]}
    else:
        # gloo's own choice is the address of the host name, which need not be reachable.
        where = {"hostname": local_address(os.environ.get("MASTER_ADDR"), master)}
    options._devices = [ProcessGroupGloo.create_device(**where, **device_options)]
    return ProcessGroupGloo(store, rank, size, options)


def host_of(master_address: str) -> str:
    """A daemon's address without its port, which not every one has: "10.0.0.1:45123", "fd00::1", "[fd00::1]:45123"."""
    if master_address.startswith("["):
        return master_address[1:].partition("]")[0]
    host, _, port = master_address.partition(":")
    return master_address if ":" in port else host


def local_address(*peers: str | None) -> str:
    """This node's address on the way to the first of `peers` that is not this host alone."""
    for peer in filter(None, peers):
        try:
            family, _, _, _, target = socket.getaddrinfo(peer, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(target)  # Sends nothing.
                address = probe.getsockname()[0]
        except OSError:
            continue
        if not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
            return address
    return LOOPBACK
