# SPDX-License-Identifier: Apache-2.0
"""The command line of bench/updates."""

import argparse
import os

from cluster_lib import arguments
from cluster_lib.arguments import count, existing_file, mbit
from cluster_lib.delay_options import Delay
from compare_lib import shared_options
from compare_lib.paths import ROOT, installation_of
from training_lib.systems import number

from .systems import objection, parse_list

ACCURACY, STEPS, TIMELINE = "accuracy", "steps", "timeline"
REAL = "real"
TIMEOUT_S = 600
# Each codec's threshold fits its gradients: digits' are larger than the emulated ones.
_ACCURACY_SYSTEMS = "sync,sharded,acco,od-sgd,ssd-sgd:pull_every=5,cd-sgd:threshold=0.03,diloco:20"
_STEPS_SYSTEMS = (
    "sync,sharded,sharded:overlap_backward,overlap_forward,acco,od-sgd,ssd-sgd:pull_every=5,cd-sgd:threshold=0.03,"
    "cd-sgd:threshold=0.03,pull=bf16,diloco:20"
)
_TIMELINE_SYSTEMS = "sync,sharded,sharded:overlap_backward,overlap_forward"
# What a tuner tries would be measured, too.
_WITHOUT_TUNING = "tune.mode=off"

_DESCRIPTION = """\
Trains with the weights updated in several ways, on one emulated cluster (scripts/cluster) with real daemons.

  accuracy   the same model on the same data, once per system and seed: does training survive?
  steps      what a step takes, with a model of 25.6 million parameters whose computing is waited through
  timeline   some of these steps, for a picture: when they compute, and when their gradients travel
"""

_EPILOG = """\
systems
  sync                  DistributedDataParallel over braid, torch.optim.SGD
  sharded[:OPTION,...]  ShardedOptimizer with torch.optim.SGD; options: pull=bf16, overlap_forward, overlap_backward
  acco[:pull=bf16]      Acco with torch.optim.SGD: a step is half of a round, and two make one update
  od-sgd, ssd-sgd, cd-sgd[:OPTION,...]
                        DelayedOptimizer with the options of BRAID_UPDATE (docs/updates.md), and force: also where
                        training is known to get worse, or to diverge
  diloco:H              DiLoCo around torch.optim.SGD, H steps between synchronizations
  local-sgd:H           PostLocalSGD around torch.optim.SGD

exit codes
  0 everything was measured, however training went; 1 a system or the cluster failed; 2 bad arguments, a system that
  braid refuses, or something that is not installed (nothing was started)
"""

_ACCURACY_EPILOG = """\
figures (± is the standard deviation over the seeds)
  accuracy       percent of the test pictures that are right after the last step, with the weights that
                 a script evaluates: after finish(), at the end of a cycle
  loss           cross entropy of the training batches: mean of the last 10 steps, and of the ranks
  step_seconds   median, the slowest rank's
  outcome        trains; diverged: a loss is infinite or no number, or the last ones are higher than the first one;
                 worse: the accuracy is more than --margin below that of sync; ranks differ: they have ended with other
                 parameters; failed: with an error

example
  bench/updates accuracy --systems sync,od-sgd,ssd-sgd:pull_every=5,local=sgd,force --learning-rate 0.1 --json a.json
"""

_STEPS_EPILOG = """\
what happens
  1. the communication of sync is measured: its forward and backward pass with nothing to compute
  2. for each --communication X, computing is set to communication / X, and the systems take steps in turns, --rounds
     times, each time in a job of its own; before those that count come --settling-steps (whole cycles), a barrier, and
     as many again; but none of diloco and local-sgd
  real: a real model of 25.3 million parameters computes, on processors that all nodes share

figures (medians of the rounds; the slowest rank's)
  step_seconds          mean of a turn's steps: --steps, or a system's own cycle where that is longer
  to_sync               that of the system / that of sync
  hidden                (computing + communication - step) / the smaller one of both, the communication being sync's,
                        times the system's bytes / sync's
  to_longest            step / the longer one of computing and that communication
  bytes_per_step        payload that a node's daemon has sent, by its counter; mean of the nodes
  to_formula            that / what the method has to send
  trainer, daemon       processor time per step and node
  others                processors that were busy meanwhile with something else: interrupts that nobody is charged
                        for, and what else runs on the machine. Where it is large, measure again

example
  bench/updates steps --communication 1,5 --rounds 3 --json steps.json
"""

_TIMELINE_EPILOG = """\
what braid-plot draws of its --json file, of rank 0, for each system
  trainer      its forward pass, backward pass and step(), by its own clock
  gradients    the moments in which the daemon was given them
  groups       the gradients that the plan has merged: from the last one of them to the result, as the daemon has noted
               both (docs/timeline.md). Of sharded the results are new weights

example
  bench/updates timeline --communication 1 --json timeline.json
  build/venv/bin/braid-plot timeline.json -o timeline.svg
"""

def parse(argv: list[str]) -> argparse.Namespace:
    parser = arguments.parser("bench/updates", _DESCRIPTION, _EPILOG)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    adders = {
        ACCURACY: (_add_accuracy, _ACCURACY_EPILOG),
        STEPS: (_add_steps, _STEPS_EPILOG),
        TIMELINE: (_add_timeline, _TIMELINE_EPILOG),
    }
    for name, (add, epilog) in adders.items():
        add(_command(commands, name, epilog))
    options = parser.parse_args(argv)
    _finish(parser, options)
    return options


def _command(commands, name: str, epilog: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )


def _add_accuracy(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_systems(parser, _ACCURACY_SYSTEMS)
    add("--dataset", choices=("digits", "fashion-mnist"), default="digits", help="(digits)")
    add("--seeds", type=count(1, 100), default=5, metavar="N", help="1 to N: of parameters and batches (5)")
    add("--steps", type=count(10, 10**6), default=300, metavar="N", help="of each training (300)")
    add("--warmup-steps", type=count(0, 10**6), default=100, metavar="N",
        help="of delayed ones, synchronous, in --steps (100)")  # fmt: skip
    add("--batch-size", type=count(1, 10**4), default=32, metavar="N", help="pictures per rank and step (32)")
    add("--learning-rate", type=number(1e-9, 1e3), default=0.1, metavar="X", help="of SGD (0.1)")
    add("--momentum", type=number(0, 0.999999), default=0.9, metavar="X", help="of SGD (0.9)")
    add("--hidden", type=count(1, 10**5), default=128, metavar="N", help="width of the hidden layers (128)")
    add("--evaluate-every", type=count(1, 10**6), default=20, metavar="STEPS", help="(20)")
    add("--margin", type=number(0, 100), default=2.0, metavar="PERCENT", help="what is worse (2)")
    _add_cluster(parser)


def _add_steps(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_systems(parser, _STEPS_SYSTEMS)
    add("--communication", type=_ratios, default="0.5,1,1.5,5", metavar="X,...",
        help="times computing, or real: a real model computes (0.5,1,1.5,5)")  # fmt: skip
    add("--rounds", type=count(1, 1000), default=3, metavar="N", help="turns of each system (3)")
    add("--steps", type=count(1, 10**5), default=5, metavar="N", help="of a turn (5)")
    add("--settling-steps", type=count(1, 10**5), default=5, metavar="N", help="before them, twice (5)")
    _add_trace(parser)
    _add_cluster(parser)


def _add_timeline(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_systems(parser, _TIMELINE_SYSTEMS)
    add("--communication", type=number(1e-3, 1e3), default=1.0, metavar="X", help="times computing (1)")
    add("--steps", type=count(1, 20), default=3, metavar="N", help="that are drawn (3)")
    add("--settling-steps", type=count(1, 40), default=8, metavar="N", help="before them (8)")
    _add_trace(parser)
    _add_cluster(parser)


def _add_trace(parser: argparse.ArgumentParser) -> None:
    trace = os.path.join(ROOT, "traces", "resnet50_b4.json")
    parser.add_argument(
        "--trace", type=existing_file, default=trace, metavar="FILE",
        help="whose parameters and times, scaled, the model has (traces/resnet50_b4.json)",
    )  # fmt: skip


def _add_systems(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--systems", type=parse_list, default=default, metavar="SYSTEM,...", help=f"({default})"
    )


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--nodes", type=count(2, 64), default=4, metavar="N", help="nodes, with a rank each (4)")
    add("--flow-mbit", type=mbit, metavar="Y[,Y...]", default="500", help="cap of each TCP flow (500)")
    built = "bin/braidd and lib/libbraid.so.0"
    shared_options.add(parser, "for one training, or turn", built, TIMEOUT_S, nic_mbit="2000")


def _ratios(text: str) -> list[float | str]:
    parts = [part if part == REAL else number(1e-3, 1e3)(part) for part in text.split(",")]
    if len(set(parts)) != len(parts):
        raise argparse.ArgumentTypeError(f"'{text}' names something twice")
    return parts


def _finish(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    options.build = options.build or os.path.join(ROOT, "build", "release")
    options.braid = installation_of(ROOT, options.build)
    options.delay, options.ranks_per_node = Delay(), 1
    if options.command in (STEPS, TIMELINE):
        options.settings = [_WITHOUT_TUNING, *options.settings]
    if options.command == TIMELINE and not options.json:
        parser.error("timeline needs --json FILE, which braid-plot draws")
    if options.command == STEPS and options.systems[0].text != "sync":
        parser.error("the first system of steps is sync: others are compared with it")
    momentum = options.momentum if options.command == ACCURACY else 0.9
    between = options.evaluate_every if options.command == ACCURACY else None
    refused = [objection(system, momentum, between) for system in options.systems]
    if any(refused):
        parser.error("; ".join(filter(None, refused)))
