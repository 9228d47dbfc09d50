# SPDX-License-Identifier: Apache-2.0
"""While COMMAND runs: pass on its output, notice who ends, keep the deadline."""

import selectors
import signal
import time
from collections.abc import Callable

from . import processes
from .daemons import Daemon
from .delay_line import DelayLine
from .errors import OutputClosed, TimedOut
from .output import Pump, Sink
from .ranks import Rank
from .signals import Signals

# After the last rank has ended, its own children may still hold its pipes and print.
_LINGER_S = 0.5


class Supervisor:
    """Watches ranks and daemons from one loop; sleeps when nothing happens. Main thread only."""

    def __init__(self, signals: Signals, say: Callable[[str], None]):
        self._signals = signals
        self._say = say
        self._ranks: list[Rank] = []
        self._daemons: list[Daemon] = []
        self._delay_line: DelayLine | None = None
        self._pumps: dict[int, Pump] = {}
        self._sinks = (Sink(1), Sink(2))
        self._selector = selectors.DefaultSelector()
        self._selector.register(signals.descriptor, selectors.EVENT_READ)

    def watch(
        self, ranks: list[Rank], daemons: list[Daemon], delay_line: DelayLine | None
    ) -> None:
        self._ranks, self._daemons, self._delay_line = ranks, daemons, delay_line
        for rank in ranks:
            prefix = f"[{rank.number}] ".encode()
            pipes = (rank.process.stdout, rank.process.stderr)
            for pipe, sink in zip(pipes, self._sinks, strict=True):
                self._pumps[pipe.fileno()] = Pump(pipe, sink, prefix)
                self._selector.register(pipe, selectors.EVENT_READ)

    def run(self, timeout_s: float | None) -> int:
        """Returns the worst exit code once all ranks have ended and all they printed is out."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._all_ended():
            self._turn(deadline)
            self._check()
            if deadline is not None and time.monotonic() >= deadline and not self._all_ended():
                raise TimedOut
        linger = time.monotonic() + _LINGER_S
        while self._pumps and time.monotonic() < linger:
            self._turn(linger)
            self._check()
        for rank in self._ranks:
            if rank.exit_code() != 0:
                self._say(f"rank {rank.number}: {processes.describe_exit(rank.process.returncode)}")
        return max(rank.exit_code() for rank in self._ranks)

    def _check(self) -> None:
        self._signals.check()
        if any(sink.closed for sink in self._sinks):
            raise OutputClosed
        if self._delay_line is not None:
            self._delay_line.check()

    def stop_ranks(self) -> None:
        """Ends the ranks, their children in the same process group included."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for rank in self._ranks:
                processes.signal_group(rank.process, number)
            deadline = time.monotonic() + processes.TERMINATE_GRACE_S
            while not self._all_ended() and time.monotonic() < deadline:
                self._turn(deadline)

    def drain(self) -> None:
        """Passes on what is left in the pipes. Call it when all writers are gone."""
        for descriptor, pump in list(self._pumps.items()):
            deadline = time.monotonic() + _LINGER_S
            while time.monotonic() < deadline:
                if not pump.move():
                    break
            else:
                pump.finish()  # a writer that left the cluster still holds it
            del self._pumps[descriptor]

    def report_daemons(self) -> None:
        """Says of each daemon that has ended how it ended, once."""
        for daemon in self._daemons:
            if not daemon.reported and daemon.process.poll() is not None:
                daemon.reported = True
                self._say(daemon.obituary())

    def _all_ended(self) -> bool:
        # Not any(): each of them must be polled, or it stays a zombie.
        return all([rank.process.poll() is not None for rank in self._ranks])

    def _turn(self, deadline: float | None) -> None:
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        for key, _ in self._selector.select(timeout):
            if key.fd == self._signals.descriptor:
                self._signals.drain()
                self.report_daemons()
                continue
            if not self._pumps[key.fd].move():
                self._selector.unregister(key.fd)
                del self._pumps[key.fd]
