# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/cluster."""

import argparse
import contextlib
import os
import shutil
import sys

from . import arguments, built, delay_line, delay_options, shaping
from .arguments import count, executable, existing_file, setting
from .errors import ClusterError
from .network import INTERFACE, NODES_MAX

RANKS_PER_NODE_MAX = 64

_DESCRIPTION = """\
Emulates a cluster on this machine: N nodes (network namespaces) joined by a switch, one braidd on
each, and runs COMMAND once per rank inside its node. The host's network is not touched, and
everything is removed at the end, whatever the end is.
"""

_EPILOG = f"""\
COMMAND finds in its environment
  RANK, LOCAL_RANK, LOCAL_WORLD_SIZE, WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT
  BRAID_SOCKET        the node's daemon (with --no-daemons: where it would be)
  BRAID_JOB           a job name of this run
  BRAID_CLUSTER_DIR   the run directory; its cluster.json lists the nodes: name, namespace, address,
                      socket, log, daemon_pid, daemon_command (to start it again), ranks and pids
  GLOO_SOCKET_IFNAME  the node's interface ({INTERFACE}, or lo with --loopback)
  OMP_NUM_THREADS     1 unless set

what a run ends with
  the worst exit code of all ranks (128 + signal for a killed one), or
  70   every rank succeeded, but a daemon ended with an error, or did not end when asked to
       (one that was stopped or killed from outside is reported, but is no error)
  124  --timeout was over       125  the tool failed, a daemon did not start
  130, 143  the tool was interrupted, terminated       141  nobody reads its output any more
  2    bad arguments

the emulated network
  NIC and caps are HTB on what a node sends, both directions of a connection have the same cap.
  Flows hash over {shaping.CLASSES} classes by their two TCP ports; flows in one class share its
  cap. Only TCP over IPv4 is capped. Class k has cap number (k mod number of caps).
  Nodes reach each other by address: 10.77.<cluster>.<node + 1>, with --ipv6 only
  fd77:<cluster>::<node + 1> (in hexadecimal).
  --delay-ms is one way, for every packet from a node to another: a ping takes twice as long. Jitter
  is evenly spread and keeps the order: behind a late packet all others of that node are late, too.
  Loss meets each packet of the wire (1500 bytes) by itself, in both directions. Delay and loss are
  made by braid-delay-line, a process that needs /dev/net/tun. It holds {delay_line.QUEUE_MIB} MiB of what a node has
  sent, drops more, and at the end says how many. Without these options it is not there.

examples
  Four nodes of a cloud in small, 2 Gbit/s each and 0.5 Gbit/s per flow, one trainer on each:
    scripts/cluster --nodes 4 --nic-mbit 2000 --flow-mbit 500 -- python3 train.py

  What can the network do? (no daemons; node 0 asks, node 1 answers)
    scripts/cluster --nodes 2 --nic-mbit 2000 --flow-mbit 500 --no-daemons --timeout 60 -- \\
      sh -c 'if [ $RANK = 1 ]; then iperf3 -s -1; else sleep 1; iperf3 -c 10.77.0.2 -P 8; fi'
    (take the address of node 1 from $BRAID_CLUSTER_DIR/cluster.json when several clusters run)

  A cloud with good and bad flows, other settings for the daemons, their logs kept:
    scripts/cluster --flow-mbit 500,500,100 --set transport.flows_per_link=8 --keep-logs logs -- \\
      build/release/bin/braid-bench all_reduce -b 25M -e 25M

  The same cloud over a longer distance: 5 ms there and back, one packet in 10,000 lost
    scripts/cluster --nodes 4 --nic-mbit 2000 --flow-mbit 500 --delay-ms 2.5 --loss-percent 0.01 -- \
      build/release/bin/braid-bench all_reduce --sizes 1MB,25MB

  Look around in a running cluster, from another terminal:
    ip netns exec $(jq -r .nodes[1].namespace DIR/cluster.json) ss -tin

  Make its network worse while it runs (0 = no limit):
    scripts/cluster --set-caps DIR --nic-mbit 1000 --flow-mbit 100
"""


_NAME = "braid-cluster" if built.IS_INSTALLED else "scripts/cluster"
_DAEMON = "build/release/bin/braidd, else the newest build/*/bin/braidd"
if built.IS_INSTALLED:
    _DAEMON = "the one in PATH"
    _EPILOG = _EPILOG.replace("scripts/cluster", _NAME).replace("build/release/bin/", "")


def _mbit(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of Mbit/s") from None


def _mbit_list(text: str) -> list[float]:
    return [_mbit(part) for part in text.split(",")]


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number of seconds")
    return value


def _add_network(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--nic-mbit", type=_mbit, metavar="X", help="each node's NIC, Mbit/s; 0 = unshaped (0)")
    add(
        "--flow-mbit",
        type=_mbit_list,
        metavar="Y[,Y...]",
        help="cap of each TCP flow, Mbit/s; several values are dealt out by hash; 0 = no cap (0)",
    )
    add("--ipv6", action="store_true", help="nodes have IPv6 addresses, and no IPv4 but 127.0.0.1")
    delay_options.add(parser)


def _add_daemons(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--racks",
        type=count(1, NODES_MAX),
        metavar="R",
        help="node i is in rack i mod R: the daemons' node.rack (in none)",
    )
    add("--daemon-config", type=existing_file, metavar="FILE", help="configuration of the daemons")
    add(
        "--set",
        type=setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="a setting for all daemons, stronger than the file and the tool's own; repeatable",
    )
    add(
        "--daemon",
        type=executable,
        metavar="PATH",
        help=f"the braidd to start ({_DAEMON})",
    )
    add("--no-daemons", action="store_true", help="start no daemons: the network and COMMAND only")


def _parser() -> argparse.ArgumentParser:
    parser = arguments.parser(
        _NAME,
        _DESCRIPTION,
        _EPILOG,
        "%(prog)s [options] -- COMMAND [ARGUMENT...]\n"
        "       %(prog)s --set-caps DIR [--nic-mbit X] [--flow-mbit Y[,Y...]]",
    )
    add = parser.add_argument
    add("--nodes", type=count(1, NODES_MAX), default=2, metavar="N", help="nodes (2)")
    add(
        "--ranks-per-node",
        type=count(1, RANKS_PER_NODE_MAX),
        default=1,
        metavar="R",
        help="how often COMMAND runs on each node (1)",
    )
    _add_network(parser)
    _add_daemons(parser)
    add(
        "--loopback",
        action="store_true",
        help="no namespaces: all nodes on 127.0.0.x of this host, unshaped. Needs no privileges; "
        "taken by itself where namespaces are not allowed and no shaping was asked for",
    )
    add("--keep-logs", metavar="DIR", help="copy the daemons' logs there at the end: DIR/node0.log")
    add(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help="stop everything and exit with 124 if COMMAND takes longer",
    )
    add(
        "--set-caps",
        metavar="DIR",
        help="change the caps of the running cluster whose BRAID_CLUSTER_DIR this is, and exit",
    )
    return parser


def parse(argv: list[str]) -> argparse.Namespace:
    """The options, checked; `command` is what stood after the first `--`."""
    mine, separator, command = argv, False, []
    if "--" in argv:
        at = argv.index("--")
        mine, separator, command = argv[:at], True, argv[at + 1 :]
    parser = _parser()
    options = parser.parse_args(mine)
    options.command = command
    if options.set_caps is not None:
        if separator:
            parser.error("--set-caps changes a running cluster: it takes no COMMAND")
        if delay_options.are_given(options):
            parser.error("--set-caps cannot change delay and loss")
        if options.nic_mbit is None and options.flow_mbit is None:
            parser.error("--set-caps needs --nic-mbit or --flow-mbit, or both")
    elif not command:
        parser.error(f"COMMAND is missing: put it after `--`, as in: {_NAME} -- hostname")
    elif shutil.which(command[0]) is None:
        parser.error(f"COMMAND {command[0]} is neither an executable file nor found in PATH")
    for_daemons = (options.daemon, options.daemon_config, options.settings, options.racks)
    if options.no_daemons and any(for_daemons):
        parser.error("--no-daemons leaves no use for --daemon, --daemon-config, --set and --racks")
    try:
        shaping.check(options.nic_mbit, options.flow_mbit or [])
        options.delay = delay_options.parse(options)
    except ClusterError as error:
        parser.error(str(error))
    shaped = shaping.is_wanted(options.nic_mbit, options.flow_mbit or [])
    if options.loopback and shaped:
        parser.error("--loopback cannot shape the network: leave out --nic-mbit and --flow-mbit")
    if options.ipv6 and options.loopback:
        parser.error("--loopback has no IPv6: leave out one of --loopback and --ipv6")
    if options.ipv6 and any(options.flow_mbit or []):
        parser.error("only TCP over IPv4 is capped: leave out one of --flow-mbit and --ipv6")
    if options.loopback and options.delay.is_wanted():
        parser.error("--loopback cannot delay or lose packets: leave it out")
    return options


def say(text: str) -> None:
    """The tool's own words, apart from those of the ranks."""
    with contextlib.suppress(OSError):  # nobody reads it any more
        print(f"cluster: {text}", file=sys.stderr, flush=True)
