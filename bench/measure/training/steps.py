# SPDX-License-Identifier: Apache-2.0
"""bench/steps: the systems in turns, some steps of each."""

import argparse
import os

from cluster_lib.arguments import count, distinct, existing_file

from .. import needs, options, run, table
from ..cluster import Cluster
from ..errors import RunFailed
from ..options import number
from ..paths import ROOT
from . import step_figures, systems
from .ranks import Ranks
from .systems import BRAID, KFAC, MUON, System, objection, parse_list

REAL = "real"
_MOMENTUM = 0.9  # of all
# The codec's threshold fits the emulated gradients. What a tuner tries would be measured, too.
_SYSTEMS = (
    "braid,sharded,sharded:overlap_backward,overlap_forward,acco,od-sgd,ssd-sgd:pull_every=5,cd-sgd:threshold=0.03,"
    "cd-sgd:threshold=0.03,pull=bf16,diloco:20"
)
_WITHOUT_TUNING = "tune.mode=off"

_DESCRIPTION = """\
Measures what a training step takes with the weights updated in several ways, on one emulated cluster (scripts/cluster)
with real daemons: a model with the parameters of a trace, whose computing is waited through.
"""

_EPILOG = f"""\
{systems.HELP}
what happens
  1. the communication of plain braid is measured: its forward and backward pass with nothing to compute
  2. for each --communication X, computing is set to communication / X, and the systems take steps in turns, --rounds
     times, each time in a job of its own; before those that count come --settling-steps (whole cycles), a barrier, and
     as many again; but none of diloco and local-sgd
  real: a real model of 25.3 million parameters computes, on processors that all nodes share

figures (medians of the rounds; the slowest rank's)
  step_seconds          mean of a turn's steps: --steps, or a system's own cycle where that is longer
  to_first              that of the system / that of plain braid
  hidden                (computing + communication - step) / the smaller one of both, the communication being braid's,
                        times the system's bytes / braid's
  to_longest            step / the longer one of computing and that communication
  bytes_per_step        payload that a node's daemon has sent, by its counter; mean of the nodes
  to_formula            that / what the method has to send
  trainer, daemon       processor time per step and node

what braid-plot draws with --timeline, of rank 0 in each system's last turn
  trainer      its forward pass, backward pass and step(), by its own clock
  gradients    the moments in which the daemon was given them
  groups       the gradients that the plan has merged: from the last one of them to the result, as the daemon has noted
               both (docs/timeline.md). Of sharded the results are new weights

example
  bench/steps --communication 1,5 --rounds 3 --json steps.json
  bench/steps --communication 1 --rounds 1 --systems braid,sharded --steps 3 --timeline --json timeline.json
  build/venv/bin/braid-plot timeline.json -o timeline.svg
"""


def main(argv: list[str]) -> int:
    return Steps(parse(argv)).run(argv)


def _ratio(text: str) -> float | str:
    return text if text == REAL else number(1e-3, 1e3)(text)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = options.parser("bench/steps", _DESCRIPTION, _EPILOG, timeout_s=600)
    options.add_cluster(parser, nodes_min=2, nic_mbit="2000", flow_mbit="500")
    add = parser.add_argument
    add("--systems", type=parse_list, default=_SYSTEMS, metavar="SYSTEM,...", help=f"({_SYSTEMS})")
    add("--communication", type=distinct(_ratio), default="0.5,1,1.5,5", metavar="X,...",
        help="times computing, or real: a real model computes (0.5,1,1.5,5)")  # fmt: skip
    add("--rounds", type=count(1, 1000), default=3, metavar="N", help="turns of each system (3)")
    add("--steps", type=count(1, 10**5), default=5, metavar="N", help="of a turn (5)")
    add("--settling-steps", type=count(1, 10**5), default=5, metavar="N", help="before them, twice (5)")
    add("--trace", type=existing_file, default=os.path.join(ROOT, "traces", "resnet50_b4.json"), metavar="FILE",
        help="whose parameters and times, scaled, the model has (traces/resnet50_b4.json)")  # fmt: skip
    add("--timeline", action="store_true", help="with --json: also when the steps compute and send, for braid-plot")
    chosen = options.parse(parser, argv)
    chosen.settings = [_WITHOUT_TUNING, *chosen.settings]
    if chosen.systems[0].text != BRAID:
        parser.error("the first of --systems is braid: others are compared with it")
    if chosen.timeline and (not chosen.json or len(chosen.communication) != 1):
        parser.error("--timeline goes with --json, and one --communication: all systems have one time axis")
    refused = [f"{one}: gloo has no daemon" for one in chosen.systems if one.backend != BRAID]
    refused += [f"{one}: the model has no layers for it" for one in chosen.systems if one.kind in (KFAC, MUON)]
    refused += [text for one in chosen.systems if (text := objection(one, _MOMENTUM))]
    if refused:
        parser.error("; ".join(refused))
    return chosen


class Steps(run.Run):
    command = "bench/steps"

    def __init__(self, chosen: argparse.Namespace):
        super().__init__(chosen)
        self._communication_seconds: float | None = None
        self._rows: list[dict] = []
        self._timelines: dict[str, dict] = {}  # by system what its last turn's rank 0 has seen

    def missing(self) -> list[str]:
        braid = self._chosen.braid
        wanted = [braid.program("braidd"), braid.library]
        if self._chosen.timeline:
            wanted.append(braid.program("braidctl"))
        return needs.torch() + needs.files(wanted)

    def measure(self) -> None:
        cluster = Cluster(self._chosen, self._chosen.braid)
        ranks = Ranks(cluster, self._chosen.braid, self._chosen.timeout)
        try:
            self._measure(cluster, ranks)
        finally:
            self.versions |= ranks.versions
            ranks.close()
            self.end(cluster)

    def _measure(self, cluster: Cluster, ranks: Ranks) -> None:
        first = self._chosen.systems[0]
        turns = self._turns([first], 0.0, cluster, ranks)[first]
        if self.errors:
            raise RunFailed("without plain braid there is nothing to compare with")
        seconds = self._communication_seconds = step_figures.median_of(turns, "pass_seconds")
        self.say(f"communication of braid: {1e3 * seconds:.0f} ms")
        for ratio in self._chosen.communication:
            compute = None if ratio == REAL else seconds / ratio
            turns_of = self._turns(self._chosen.systems, compute, cluster, ranks)
            rows = step_figures.rows(turns_of, compute, seconds, self._chosen.nodes)
            self._rows += [{"communication": ratio, **row} for row in rows]

    def _turns(
        self, wanted: list[System], compute: float | None, cluster: Cluster, ranks: Ranks
    ) -> dict[System, list[dict]]:
        made: dict[System, list[dict]] = {system: [] for system in wanted}
        for _ in range(self._chosen.rounds):
            for system, turns in made.items():
                cluster.check()
                if system.text not in self.errors:
                    task = self._task(system, compute, cluster)
                    self.attempt(
                        system.text, lambda s=system, t=turns, a=task: t.append(self._turn(s, ranks.ask(s, a)))
                    )
        return made

    def _task(self, system: System, compute: float | None, cluster: Cluster) -> dict:
        chosen = self._chosen
        return {
            "kind": "steps",
            "compute_seconds": compute,
            "trace": chosen.trace,
            "steps": max(chosen.steps, system.cycle_steps),
            "settling_steps": chosen.settling_steps,
            "daemons": [[node.address, node.daemon_pid] for node in cluster.nodes],
            "braidctl": chosen.braid.program("braidctl") if chosen.timeline else "",
        }

    def _turn(self, system: System, answers: list[dict]) -> dict:
        if self._chosen.timeline:
            self._timelines[system.text] = {name: answers[0][name] for name in ("computing", "gradients", "operations")}
        turn = step_figures.of_turn(answers)
        self.say(f"{system}: {1e3 * turn['step_seconds']:.0f} ms a step")
        return turn

    def report(self) -> dict:
        return {
            "communication_seconds": self._communication_seconds,
            "rows": self._rows,
            "timelines": self._timelines,
        }

    def lines(self, report: dict) -> list[str]:
        asked, seconds = report["options"], report["communication_seconds"]
        measured = "not measured" if seconds is None else table.seconds_text(seconds)
        parts = [f"communication of braid {measured}", f"{asked['rounds']} rounds of {asked['steps']} steps"]
        return [f"# {', '.join([*parts, table.shape_text(asked)])}", *table.lines(columns(), report["rows"])]


def columns() -> list[table.Column]:
    def two(value: float) -> str:
        return f"{value:.2f}"

    return [
        table.column("system", "system"),
        table.column("communication", "communication"),
        table.column("computing", "compute_seconds", table.seconds_text),
        table.column("step", "step_seconds", table.seconds_text),
        table.column("to braid", "to_first", two),
        table.column("hidden", "hidden", two),
        table.column("to longest", "to_longest", two),
        table.column("MB sent", "bytes_per_step", lambda size: f"{size / 1e6:.1f}"),
        table.column("to formula", "to_formula", lambda ratio: f"{ratio:.3f}"),
        table.column("trainer", "trainer_cpu_seconds", table.seconds_text),
        table.column("daemon", "daemon_cpu_seconds", table.seconds_text),
    ]
