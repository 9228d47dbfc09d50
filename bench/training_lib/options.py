# SPDX-License-Identifier: Apache-2.0
"""The command line of bench/train."""

import argparse

from cluster_lib import arguments
from cluster_lib.arguments import count, mbit
from cluster_lib.delay_options import Delay
from compare_lib import shared_options
from compare_lib.paths import ROOT, installation_of

from .systems import BRAID, HOOKS, number, parse_list

# Percent of the test set, of --target.
DATASETS = {"digits": 95.0, "fashion-mnist": 80.0}
TIMEOUT_S = 600
_LAYERS = 2

_DESCRIPTION = """\
Trains the same model on the same data with DistributedDataParallel, once per system and seed, on one
emulated cluster (scripts/cluster): does training survive what a system loses of the gradients, and
what does it bring? The systems train in turns, one seed each, by new processes every time: what
comes and goes on the machine meets all of them.
"""

_EPILOG = f"""\
systems
  braid                braid, nothing is lost: a script that says "gloo", with BRAID_ENABLE=1
  braid:CODEC          the same with BRAID_CODEC: any codec of docs/compression.md, such as braid:int8 or
                       braid:int4:block=128,rounding=stochastic
  gloo                 plain torch
  gloo:HOOK            gloo, and one of torch's own communication hooks for DDP:
                       {", ".join(HOOKS)}
                       (PowerSGD with rank 4, from the third step on)
  braid:hook=HOOK      the same hook over braid
  With @learning-rate=X or @momentum=X behind it a system has its own: braid:dgc:ratio=0.01@momentum=0.
  @bucket-mib=X is DDP's bucket_cap_mb. Over gloo, torch's PowerSGD and quantization hooks need it so large
  that there is one bucket: with several they wait for each other in gloo's threads

data
  digits         1797 pictures of 8x8, every fifth one for the test (scripts/setup --digits); a network of
                 --layers hidden layers, each after the second adds to what comes in
  fashion-mnist  70000 pictures of 28x28, as examples/fashion_mnist.py has them, and its model

figures (± is the standard deviation over the seeds)
  accuracy              percent of the test pictures that are right after the last step
  loss                  cross entropy of the training batches: mean of the last 10 steps, and of the ranks
  step_seconds          of a step, until the slowest rank is through: the median of all steps of all seeds
                        but the first 5 of each, in which braid looks at a model, and buckets are made
  communication_seconds of one step in 5: forward and backward pass, less those of the same batch
                        without communication, which are run just before; the median, the slowest ranks'
  bytes_per_step        that a node's interface has sent, headers and acknowledgements included: the
                        median, and the mean of the nodes
  target_seconds        seconds of training (steps only) until an evaluation, one each --evaluate-every
                        steps, found --target: the mean of the seeds; - if one of them never did
  target_steps          how many steps these were
  outcome               trains; diverged: a loss is infinite or no number; worse: the accuracy is more than
                        --margin below that of the first one of braid and gloo in --systems;
                        ranks differ: they have ended with other parameters; failed: with an error
  Nodes share this machine's processors: compare the times of one run with each other.

exit codes
  0 all systems were measured, however training went; 1 a system or the cluster failed; 2 bad arguments
  or something that is not installed (nothing was started)

example
  bench/train --systems braid,braid:int8,braid:topk:ratio=0.01,gloo,gloo:powersgd --json train.json
"""


def parse(argv: list[str]) -> argparse.Namespace:
    parser = arguments.parser("bench/train", _DESCRIPTION, _EPILOG)
    add = parser.add_argument
    add(
        "--systems",
        type=parse_list,
        default="braid,braid:bf16,braid:int8,gloo,gloo:bf16",
        metavar="SYSTEM,...",
        help="what is compared (braid,braid:bf16,braid:int8,gloo,gloo:bf16)",
    )
    add("--dataset", choices=DATASETS, default="digits", help="(digits)")
    add("--seeds", type=count(1, 100), default=5, metavar="N", help="1 to N: of parameters and batches (5)")
    add("--steps", type=count(10, 10**6), default=200, metavar="N", help="of each training (200)")
    add("--batch-size", type=count(1, 10**4), default=32, metavar="N", help="pictures per rank and step (32)")
    add("--learning-rate", type=number(1e-9, 1e3), default=0.05, metavar="X", help="of SGD (0.05)")
    add("--momentum", type=number(0, 0.999999), default=0.9, metavar="X", help="of SGD (0.9)")
    add("--hidden", type=count(1, 10**5), default=512, metavar="N", help="width of the hidden layers (512)")
    add("--layers", type=count(_LAYERS, 1000), default=_LAYERS, metavar="N", help="hidden ones, of digits (2)")
    wanted = ", ".join(f"{percent:g} for {name}" for name, percent in DATASETS.items())
    add("--target", type=number(0, 100), metavar="PERCENT", help=f"of the test pictures ({wanted})")
    add("--evaluate-every", type=count(1, 10**6), default=20, metavar="STEPS", help="(20)")
    add("--margin", type=number(0, 100), default=2.0, metavar="PERCENT", help="what is worse (2)")
    add("--nodes", type=count(1, 64), default=4, metavar="N", help="nodes (4)")
    add("--ranks-per-node", type=count(1, 64), default=1, metavar="R", help="on each node (1)")
    add("--flow-mbit", type=mbit, metavar="Y[,Y...]", default="500", help="cap of each TCP flow (500)")
    shared_options.add(
        parser,
        "for the start of a system, and for one training",
        "bin/braidd, bin/braid-bench and lib/libbraid.so.0",
        TIMEOUT_S,
        nic_mbit="2000",
    )
    return _finish(parser, shared_options.parse(parser, argv))


def _finish(parser: argparse.ArgumentParser, options: argparse.Namespace) -> argparse.Namespace:
    options.delay = Delay()
    if options.target is None:
        options.target = DATASETS[options.dataset]
    uses_braid = any(system.backend == BRAID for system in options.systems)
    options.braid = installation_of(ROOT, options.build) if uses_braid else None
    if options.settings and not uses_braid:
        parser.error("--set is for braid's daemons, and braid is not among the systems")
    if options.layers != _LAYERS and options.dataset != "digits":
        parser.error("--layers is for the dataset digits")
    return options
