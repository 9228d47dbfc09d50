# SPDX-License-Identifier: Apache-2.0
"""The command line of bench/advice."""

import argparse
import dataclasses
import os
import re

from cluster_lib import arguments
from cluster_lib.arguments import count, distinct
from compare_lib import shared_options
from compare_lib.paths import ROOT
from training_lib.systems import number

TIMEOUT_S = 300
FLOWS_PER_NIC = 4  # a flow is capped to so small a part of its NIC

_DESCRIPTION = """\
Holds what braidctl advise predicts for a running job against what its steps take with each codec:
traces of models are played on emulated clusters (scripts/cluster), with real gradients and compute
that is slept through (braid-bench replay).
"""

_EPILOG = """\
what happens, for each trace and bandwidth, on a cluster of its own
  1. the steps without a codec are measured: braid-bench replay --planner live
  2. a job without a codec begins again; after as many steps braidctl advise --job is asked about it
  3. the steps with each codec are measured, a job for each

figures
  predicted, measured   an iteration: from the beginning of a step to the next one's, with what the benchmark
                        does in between. measured: the median of --steps steps, after as many in which
                        daemons plan
  error                 predicted / measured - 1
  regret                of the recommended codec: its measured step / the shortest measured one - 1
  Codecs are encoded on the processors that all nodes and trainers share: the cores of this machine over
  the nodes are what the advisor is told (--encode-threads). Rates are measured before, on an idle machine.

exit codes
  0 all points are complete, 1 one of them or a cluster failed, 2 bad arguments or something that is
  not built (nothing was started)

example
  bench/advice --traces resnet50_b4@0.3,googlenet_k80_b64 --nic-mbit 1000,2000 --codecs bf16,int8 --json advice.json
"""


@dataclasses.dataclass(frozen=True)
class ScaledTrace:
    """A file of traces/, all of whose times are multiplied."""

    name: str
    scale: float

    @property
    def path(self) -> str:
        return os.path.join(ROOT, "traces", f"{self.name}.json")

    def __str__(self) -> str:
        return self.name if self.scale == 1 else f"{self.name}@{self.scale:g}"


def _trace(text: str) -> ScaledTrace:
    name, _, scale = text.partition("@")
    if not re.fullmatch(r"\d*\.?\d+", scale or "1") or float(scale or "1") <= 0:
        raise argparse.ArgumentTypeError(f"'{text}': '{scale}' is no scale; right is a number such as 0.3")
    trace = ScaledTrace(name, float(scale or "1"))
    if not os.path.isfile(trace.path):
        raise argparse.ArgumentTypeError(f"'{text}': traces/ has no {name}.json")
    return trace


def _bandwidth(text: str) -> int:
    """Mbit/s of a NIC; 0: not shaped."""
    if not re.fullmatch(r"\d+", text) or not (text == "0" or FLOWS_PER_NIC <= int(text) <= 10**6):
        raise argparse.ArgumentTypeError(f"'{text}' is no bandwidth; right is 4 to 1000000 Mbit/s, or 0")
    return int(text)


def _codecs(text: str) -> list[str]:
    """A word without a name of its own, such as seed=1, belongs to the codec before it."""
    codecs: list[str] = []
    for word in text.split(","):
        if "=" in word.partition(":")[0] and codecs:
            codecs[-1] += "," + word
        elif word in (*codecs, "none", ""):
            raise argparse.ArgumentTypeError(f"'{text}': '{word}' stands twice, or is no codec")
        else:
            codecs.append(word)
    return codecs


def parse(argv: list[str]) -> argparse.Namespace:
    parser = arguments.parser("bench/advice", _DESCRIPTION, _EPILOG)
    add = parser.add_argument
    add(
        "--traces",
        type=distinct(_trace),
        default="resnet50_b4@0.1,densenet121_b4@0.02,googlenet_k80_b64@0.5",
        metavar="NAME[@SCALE],...",
        help="of traces/, their times multiplied (resnet50_b4@0.1,densenet121_b4@0.02,googlenet_k80_b64@0.5)",
    )
    add(
        "--nic-mbit",
        type=distinct(_bandwidth),
        default="1000,2000,4000",
        metavar="X,...",
        help=f"each node's NIC, flows capped to 1/{FLOWS_PER_NIC} of it; 0: no caps (1000,2000,4000)",
    )
    add("--codecs", type=_codecs, default="bf16,int8,int4,2bit,topk:ratio=0.01", metavar="CODEC,...",
        help="(bf16,int8,int4,2bit,topk:ratio=0.01)")  # fmt: skip
    add("--nodes", type=count(2, 64), default=4, metavar="N", help="nodes, with a rank each (4)")
    add("--steps", type=count(5, 10**5), default=20, metavar="S", help="of each codec (20)")
    cores = len(os.sched_getaffinity(0))
    add("--encode-threads", type=number(0.01, 1024), metavar="T",
        help=f"cores of a node that encode (the {cores} of this machine, over the nodes, at most 1)")  # fmt: skip
    built = "bin/braidd, bin/braidctl and bin/braid-bench"
    shared_options.add(parser, "for each job", built, TIMEOUT_S, has_nic=False)
    options = shared_options.parse(parser, argv)
    options.encode_threads = options.encode_threads or min(1.0, cores / options.nodes)
    return options
