# SPDX-License-Identifier: Apache-2.0
"""Whether a run has daemons of its own: its rank 0 decides, and all nodes do alike.

Personal daemons of a run know each other by the run's key. The daemon of a node that serves all its users
has another key, or none, so the two kinds do not meet.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from braid import _personal
from braid.errors import UnavailableError
from braid.torch.environment.variables import is_on
from braid.torch.group.launched import local_size, number_of

VARIABLE = "BRAID_PERSONAL"
_NONE = ("-", "-")  # In the place of a run.


class Decision(NamedTuple):
    """What rank 0 says of it: its host, and the run, if that has daemons of its own."""

    host: str
    run: _personal.Run | None

    def lines(self) -> tuple[str, str, str]:
        return self.host, *(_NONE if self.run is None else (self.run.name, self.run.key))

    @classmethod
    def of_lines(cls, host: str, name: str, key: str) -> Decision:
        return cls(host, None if name == _NONE[0] else _personal.Run(name, key))


def decide(size: int) -> Decision:
    """On rank 0 of a group of this size. If there is no daemon, one is started: BraidError says why not."""
    reason = _why_needed()
    run = None
    if reason is not None:
        world = max(size, number_of("WORLD_SIZE") or 0)
        run = _personal.new_run(has_several_nodes=local_size() != world)
        _personal.join(run, reason)
    return Decision(os.uname().nodename, run)


def follow(decision: Decision) -> None:
    """On the other ranks. BraidError: this node is not as that of rank 0."""
    reason = _why_needed()
    here = os.uname().nodename
    if decision.run is not None and reason is not None:
        _personal.join(decision.run, reason)
    elif decision.run is not None:
        socket = os.environ.get("BRAID_SOCKET") or _personal.SYSTEM_SOCKET
        raise UnavailableError(
            f"node {decision.host} (rank 0's) has no braidd and got one for this run alone, and node {here} has "
            f"one at {socket}: the two do not work together. Start braidd on {decision.host} as on {here}, or "
            f"set {VARIABLE}=1 on all ranks, without BRAID_SOCKET: then each node gets one for this run"
        )
    elif reason is not None:
        raise UnavailableError(
            f"{reason} ({here}), and that of node {decision.host} (rank 0's) works with daemons of its kind alone. "
            f"Start braidd on {here} as on {decision.host}, or set {VARIABLE}=1 on all ranks, without BRAID_SOCKET: "
            "then each node gets one for this run"
        )


def _why_needed() -> str | None:
    """None: this node has a daemon, or nobody has asked for one to be started."""
    is_asked_for = is_on(VARIABLE)
    may_start = is_asked_for or (is_on("BRAID_ENABLE") and not os.environ.get(VARIABLE))
    return _personal.why_needed(is_asked_for=is_asked_for) if may_start else None
