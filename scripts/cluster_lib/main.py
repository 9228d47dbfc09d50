# SPDX-License-Identifier: Apache-2.0
"""The course of a run: build, start the daemons, run COMMAND, take everything down."""

import argparse
import os
import signal

from . import built, cleanup, daemons, names, options, plan, ranks, shaping, state
from .delay_line import PROGRAM as DELAY_LINE
from .delay_line import DelayLine
from .errors import (
    EXIT_DAEMON_CRASHED,
    EXIT_TIMEOUT,
    EXIT_TOOL_FAILED,
    ClusterError,
    Interrupted,
    OutputClosed,
    TimedOut,
)
from .options import say
from .reaper import Reaper
from .signals import Signals
from .supervise import Supervisor


def main(argv: list[str]) -> int:
    chosen = options.parse(argv)
    try:
        if chosen.set_caps is not None:
            return _set_caps(chosen)
        return _Run(chosen).run()
    except ClusterError as error:
        say(str(error))
        return EXIT_TOOL_FAILED


def _set_caps(chosen: argparse.Namespace) -> int:
    cluster = state.load(chosen.set_caps)
    if cluster.mode != state.NAMESPACES:
        raise ClusterError("this cluster runs on loopback addresses: it cannot be shaped")
    nic = cluster.nic_mbit if chosen.nic_mbit is None else chosen.nic_mbit
    flow = cluster.flow_mbit if chosen.flow_mbit is None else chosen.flow_mbit
    shaping.apply(cluster, nic, flow)
    cluster.save()
    return 0


class _Run:
    """One run of the tool; owns everything that must be stopped and removed at its end."""

    def __init__(self, chosen: argparse.Namespace):
        self._chosen = chosen
        self._id = names.own_id()
        self._delay_line: DelayLine | None = None
        self._daemons: list[daemons.Daemon] = []
        self._ranks: list[ranks.Rank] = []

    def run(self) -> int:
        program = self._chosen.daemon
        if program is None and not self._chosen.no_daemons:
            program = built.find(built.REPOSITORY, "braidd", "give --daemon PATH, or --no-daemons")
        if self._chosen.delay.is_wanted():
            line = built.find_beside(program, built.REPOSITORY, DELAY_LINE, "leave out delay and loss")
            self._delay_line = DelayLine(line, self._chosen.delay)
        self._signals = Signals()
        self._supervisor = Supervisor(self._signals, say)
        reaper = Reaper(self._id)
        try:
            code = self._work(program)
        except Interrupted as interrupted:
            say(f"stopped by {interrupted}")
            code = interrupted.exit_code
        except TimedOut:
            say(f"COMMAND did not end within {self._chosen.timeout:g} s: stopping everything")
            code = EXIT_TIMEOUT
        except OutputClosed:
            code = 128 + signal.SIGPIPE
        finally:
            self._signals.close_door()
            self._take_down()
            reaper.dismiss()
        if code == 0 and any(daemon.crashed() for daemon in self._daemons):
            return EXIT_DAEMON_CRASHED
        return code

    def _work(self, program: str | None) -> int:
        cluster = plan.build(self._chosen, self._id, self._delay_line)
        self._signals.check()
        if program is not None:
            daemons.start(
                cluster,
                program,
                self._chosen.daemon_config,
                self._chosen.settings,
                self._chosen.racks,
                ranks.common_environment(cluster),
                self._daemons,
            )
            daemons.wait_until_ready(self._daemons, self._signals)
            cluster.save()
        say(_summary(cluster, self._chosen.ranks_per_node, program))
        ranks.start(cluster, self._chosen.command, self._chosen.ranks_per_node, self._ranks)
        self._supervisor.watch(self._ranks, self._daemons, self._delay_line)
        return self._supervisor.run(self._chosen.timeout)

    def _take_down(self) -> None:
        self._supervisor.stop_ranks()
        self._supervisor.report_daemons()
        daemons.stop(self._daemons)
        for daemon in self._daemons:
            if daemon.crashed() and not daemon.reported:
                say(daemon.obituary())
        if self._delay_line is not None and (counted := self._delay_line.stop()):
            say(counted)
        left = cleanup.remove(self._id)
        self._supervisor.drain()
        if left:
            say(f"could not remove {', '.join(left)}")


def _summary(cluster: state.Cluster, ranks_per_node: int, program: str | None) -> str:
    nic = f"NIC {cluster.nic_mbit:g} Mbit/s" if cluster.nic_mbit else "NIC unshaped"
    caps = ",".join(f"{cap:g}" for cap in cluster.flow_mbit) if any(cluster.flow_mbit) else ""
    flows = f"flows {caps} Mbit/s" if caps else "flows uncapped"
    parts = ", ".join(filter(None, [nic, flows, cluster.delay.in_words()]))
    where = "loopback" if cluster.mode == state.LOOPBACK else parts
    return (
        f"nodes: {len(cluster.nodes)}, ranks per node: {ranks_per_node}, {where}, "
        f"{'no daemons' if program is None else program}, directory {cluster.directory}"
    )
