# SPDX-License-Identifier: Apache-2.0
"""bench/train: the systems in turns, one seed of each."""

import argparse
import subprocess

from cluster_lib.arguments import count

from .. import needs, options, run, table
from ..cluster import Cluster
from ..options import number
from . import figures, systems
from .figures import BLOCK_STEPS
from .ranks import Ranks
from .systems import BRAID, System, objection, parse_list

_PROBE_TIMEOUT_S = 60
_POWER_SGD = "powersgd"
_TARGETS = {"digits": 95.0, "fashion-mnist": 80.0}  # percent of the test set
_LAYERS = 2

_DESCRIPTION = """\
Trains the same model on the same data, once per system and seed, on one emulated cluster (scripts/cluster): does
training survive what a system loses of the gradients, or how late it updates the weights, and what does it bring? The
systems train in turns, one seed each: what comes and goes on the machine meets all of them.
"""

_EPILOG = f"""\
{systems.HELP}
data
  digits         1797 pictures of 8x8, every fifth one for the test (scripts/setup --digits); a network of
                 --layers hidden layers, each after the second adds to what comes in
  fashion-mnist  70000 pictures of 28x28, as examples/fashion_mnist.py has them, and its model

figures (± is the standard deviation over the seeds)
  accuracy              percent of the test pictures that are right after the last step, with the weights that a script
                        evaluates: after finish(), at the end of a cycle
  loss                  cross entropy of the training batches: mean of the last 10 steps, and of the ranks
  step_seconds          of a step, until the slowest rank is through: the median of all steps of all seeds
                        but the first {BLOCK_STEPS} of each, in which braid looks at a model, and buckets are made
  communication_seconds of one step in {BLOCK_STEPS}, under DDP without K-FAC: forward and backward pass, less those of
                        the same batch without communication, which are run just before; the median, the slowest ranks'
  bytes_per_step        that a node's interface has sent, headers and acknowledgements included: the mean
  target_seconds        seconds of training (steps only) until an evaluation, one each --evaluate-every
                        steps, found --target: the mean of the seeds; - if one of them never did
  target_steps          the same in steps
  outcome               trains; diverged: a loss is infinite or no number, or the last ones are higher than the first
                        one; worse: the accuracy is more than --margin below that of plain braid or gloo, whichever
                        comes first; ranks differ: they have ended with other parameters; failed: with an error
  courses               in the JSON file only, for braid-plot: the loss by steps, and by seconds of training
  Nodes share this machine's processors: compare the times of one run with each other.

example
  bench/train --systems braid,braid:int8,braid:topk:ratio=0.01,gloo,gloo:powersgd,sharded,od-sgd --json train.json
"""


def main(argv: list[str]) -> int:
    return Trainings(parse(argv)).run(argv)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = options.parser("bench/train", _DESCRIPTION, _EPILOG, timeout_s=600)
    options.add_cluster(parser, nic_mbit="2000", flow_mbit="500")
    add = parser.add_argument
    default = "braid,braid:bf16,braid:int8,gloo,gloo:bf16"
    add("--systems", type=parse_list, default=default, metavar="SYSTEM,...", help=f"what is compared ({default})")
    add("--ranks-per-node", type=count(1, 64), default=1, metavar="R", help="on each node (1)")
    add("--dataset", choices=_TARGETS, default="digits", help="(digits)")
    add("--seeds", type=count(1, 100), default=5, metavar="N", help="1 to N: of parameters and batches (5)")
    add("--steps", type=count(10, 10**6), default=200, metavar="N", help="of each training (200)")
    add("--warmup-steps", type=count(0, 10**6), default=100, metavar="N",
        help="of delayed systems: synchronous ones, in --steps (100)")  # fmt: skip
    add("--batch-size", type=count(1, 10**4), default=32, metavar="N", help="pictures per rank and step (32)")
    add("--learning-rate", type=number(1e-9, 1e3), default=0.05, metavar="X", help="of SGD (0.05)")
    add("--momentum", type=number(0, 0.999999), default=0.9, metavar="X", help="of SGD (0.9)")
    add("--hidden", type=count(1, 10**5), default=512, metavar="N", help="width of the hidden layers (512)")
    add("--layers", type=count(_LAYERS, 1000), default=_LAYERS, metavar="N", help="hidden ones, of digits (2)")
    wanted = ", ".join(f"{percent:g} for {name}" for name, percent in _TARGETS.items())
    add("--target", type=number(0, 100), metavar="PERCENT", help=f"of the test pictures ({wanted})")
    add("--evaluate-every", type=count(1, 10**6), default=20, metavar="STEPS",
        help=f"a multiple of {BLOCK_STEPS} (20)")  # fmt: skip
    add("--margin", type=number(0, 100), default=2.0, metavar="PERCENT", help="what is worse (2)")
    chosen = options.parse(parser, argv)
    if chosen.target is None:
        chosen.target = _TARGETS[chosen.dataset]
    if all(system.backend != BRAID for system in chosen.systems):
        chosen.braid = None
    if chosen.settings and chosen.braid is None:
        parser.error("--set is for braid's daemons, and braid is not among the systems")
    if chosen.layers != _LAYERS and chosen.dataset != "digits":
        parser.error("--layers is for the dataset digits")
    if chosen.evaluate_every % BLOCK_STEPS:
        parser.error(f"--evaluate-every: {chosen.evaluate_every} is no multiple of {BLOCK_STEPS}")
    refused = [objection(system, chosen.momentum, chosen.evaluate_every) for system in chosen.systems]
    if any(refused):
        parser.error("; ".join(filter(None, refused)))
    return chosen


class Trainings(run.Run):
    command = "bench/train"

    def __init__(self, chosen: argparse.Namespace):
        super().__init__(chosen)
        self._seeds: dict[System, list[dict]] = {system: [] for system in chosen.systems}

    def missing(self) -> list[str]:
        found = needs.torch() + needs.dataset(self._chosen.dataset)
        if (braid := self._chosen.braid) is not None:
            bench = braid.program("braid-bench")
            files = needs.files([braid.program("braidd"), bench, braid.library])
            found += files or [text for one in self._chosen.systems if (text := codec_objection(bench, one))]
        return found

    def measure(self) -> None:
        cluster = Cluster(self._chosen, self._chosen.braid)
        ranks = Ranks(cluster, self._chosen.braid, self._chosen.timeout)
        try:
            for seed in range(1, self._chosen.seeds + 1):
                for system in self._chosen.systems:
                    cluster.check()
                    if system.text not in self.errors:
                        self.attempt(system.text, lambda s=system, n=seed: self._train(s, n, ranks))
        finally:
            self.versions |= ranks.versions
            ranks.close()
            self.end(cluster)

    def _train(self, system: System, seed: int, ranks: Ranks) -> None:
        """A system that fails keeps the seeds that it has trained."""
        chosen = self._chosen
        names = ("dataset", "steps", "warmup_steps", "batch_size", "hidden", "layers", "evaluate_every")
        task = {name: getattr(chosen, name) for name in names}
        for name in ("learning_rate", "momentum"):
            own = getattr(system, name)
            task[name] = getattr(chosen, name) if own is None else own
        answers = ranks.ask(system, {"kind": "train", "seed": seed, **task})
        done = figures.of_seed(seed, answers, chosen.ranks_per_node, chosen.target)
        self._seeds[system].append(done)
        self.say(f"{system}: seed {seed} of {chosen.seeds}: {done['accuracy']:.2f} %")

    def report(self) -> dict:
        rows = figures.rows(self._seeds, self.errors, self._chosen.margin)
        return {"rows": rows, "courses": figures.courses(rows)}

    def lines(self, report: dict) -> list[str]:
        asked = report["options"]
        parts = [
            f"{asked['dataset']}: {asked['steps']} steps of {asked['batch_size']} pictures per rank",
            f"{asked['seeds']} seeds, width {asked['hidden']}, hidden layers: {asked['layers']}",
            f"learning rate {asked['learning_rate']:g}, momentum {asked['momentum']:g}",
            table.shape_text(asked),
        ]
        return [f"# {', '.join(parts)}", *table.lines(columns(asked["target"]), report["rows"])]


def columns(target: float) -> list[table.Column]:
    return [
        table.column("system", "system"),
        table.spread_column("accuracy, %", "accuracy", 2),
        table.spread_column("loss", "loss", 4),
        table.column("step", "step_seconds", table.seconds_text),
        table.column("communication", "communication_seconds", table.seconds_text),
        table.column("MB sent per step", "bytes_per_step", lambda size: table.number_text(size / 1e6)),
        table.column(f"to {target:g} %", "target_seconds", table.seconds_text),
        table.column("steps", "target_steps", "{:.0f}".format),
        table.column("outcome", "outcome"),
    ]


def codec_objection(bench: str, system: System) -> str:
    """What braid says of a codec that it does not take."""
    if not system.codec or system.codec.partition(":")[0] == _POWER_SGD:
        return ""  # PowerSGD is made by trainers, who object themselves.
    argv = [bench, "codecs", "--bytes", "4KiB", "--repeats", "1", "--codec", system.codec]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{system}: braid-bench does not answer"
    return "" if done.returncode == 0 else f"{system}: {done.stderr.strip()}"
