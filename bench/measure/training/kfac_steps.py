# SPDX-License-Identifier: Apache-2.0
"""bench/kfac: the modes of K-FAC in turns, some steps of each."""

import argparse

from cluster_lib.arguments import count, distinct

from .. import needs, options, run, table
from ..cluster import Cluster
from ..errors import SystemFailed
from ..options import number
from . import kfac_figures
from .kfac_figures import ALONE, FIRST, LATE, MODES, PHASES
from .ranks import Ranks
from .systems import KFAC, parse as parse_system

# What a tuner tries would be measured, too.
_WITHOUT_TUNING = "tune.mode=off"

_DESCRIPTION = """\
Measures what a training step with K-FAC takes in each of its modes, on one emulated cluster (scripts/cluster) with real
daemons: the same network of linear layers, whose factors are made in each step.
"""

_EPILOG = f"""\
what happens
  For each --width all modes train in the same processes: --steps steps of one mode, then of the next, --rounds times;
  before them --settling-steps. First inverses are made in each step, then in none.
  {ALONE}: on each rank a training by itself, which sends nothing

figures (medians of all steps that count; a step takes as long as on the slowest rank)
  step          inverses are made in each step
  to {FIRST}          that of the mode / that of {FIRST}
  factors only  a step that makes factors, and no inverse: all modes then compute the same
  overlap       how much of what could be hidden behind computing is hidden, in steps without inverses:
                ({LATE} - mode) / ({LATE} - {ALONE}). {LATE} sends factors when both passes are over, and {ALONE} sends
                nothing. Gradients go during the backward pass in both
  With --waiting-ms each pass also waits, as if a device computed: four nodes share this machine's processors, and what
  these do for one node takes from the others

example
  bench/kfac --width 512,768 --json kfac.json
  bench/kfac --width 512 --waiting-ms 200
"""


def main(argv: list[str]) -> int:
    return KfacSteps(parse(argv)).run(argv)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = options.parser("bench/kfac", _DESCRIPTION, _EPILOG, timeout_s=1200)
    options.add_cluster(parser, nodes_min=2, nic_mbit="2000", flow_mbit="500")
    add = parser.add_argument
    add("--width", type=distinct(count(2, 8192)), default="512,768", metavar="N,...",
        help="of the layers, inputs and outputs (512,768)")  # fmt: skip
    add("--layers", type=count(1, 1000), default=8, metavar="N", help="(8)")
    add("--batch-size", type=count(1, 10**5), default=32, metavar="N", help="of each rank (32)")
    add("--method", choices=("eigen", "inverse"), default="inverse", help="compute_method of KFAC (inverse)")
    add("--waiting-ms", type=number(0, 1e5), default=0.0, metavar="X", help="in each pass (0)")
    add("--rounds", type=count(1, 1000), default=3, metavar="N", help="turns of each mode (3)")
    add("--steps", type=count(1, 10**5), default=5, metavar="N", help="of a turn (5)")
    add("--settling-steps", type=count(1, 10**5), default=10, metavar="N", help="of each mode, before them (10)")
    chosen = options.parse(parser, argv)
    chosen.settings = [_WITHOUT_TUNING, *chosen.settings]
    return chosen


class KfacSteps(run.Run):
    command = "bench/kfac"

    def __init__(self, chosen: argparse.Namespace):
        super().__init__(chosen)
        self._rows: list[dict] = []

    def missing(self) -> list[str]:
        braid = self._chosen.braid
        return needs.torch() + needs.files([braid.program("braidd"), braid.library])

    def measure(self) -> None:
        cluster = Cluster(self._chosen, self._chosen.braid)
        ranks = Ranks(cluster, self._chosen.braid, self._chosen.timeout)
        try:
            for width in self._chosen.width:
                cluster.check()
                self.attempt(f"width {width}", lambda w=width: self._measure(w, ranks))
        finally:
            self.versions |= ranks.versions
            ranks.close()
            self.end(cluster)

    def _measure(self, width: int, ranks: Ranks) -> None:
        names = ("layers", "batch_size", "method", "waiting_ms", "rounds", "steps", "settling_steps")
        task = {"kind": "kfac", "width": width, **{name: getattr(self._chosen, name) for name in names}}
        answers = ranks.ask(parse_system(KFAC), task)
        if any(len({answer["digests"][mode] for answer in answers}) != 1 for mode in MODES):
            raise SystemFailed("the ranks have ended with other parameters")
        self._rows += [{"width": width, **row} for row in kfac_figures.rows(answers)]
        self.say(f"width {width}: measured")

    def report(self) -> dict:
        return {"rows": self._rows}

    def lines(self, report: dict) -> list[str]:
        asked = report["options"]
        parts = [
            f"{asked['layers']} layers, {asked['batch_size']} rows per rank, {asked['method']}",
            f"passes wait {asked['waiting_ms']:g} ms",
            f"{asked['rounds']} rounds of {asked['steps']} steps",
            table.shape_text(asked),
        ]
        return [f"# {', '.join(parts)}", *table.lines(columns(), report["rows"])]


def columns() -> list[table.Column]:
    inverses, factors = PHASES
    return [
        table.column("mode", "mode"),
        table.column("width", "width"),
        table.column("step", f"{inverses}_seconds", table.seconds_text),
        table.column(f"to {FIRST}", "to_first", "{:.2f}".format),
        table.column("factors only", f"{factors}_seconds", table.seconds_text),
        table.column("overlap", "overlap", "{:.2f}".format),
    ]
