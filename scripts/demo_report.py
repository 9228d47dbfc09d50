# SPDX-License-Identifier: Apache-2.0
"""Compares two runs of examples/fashion_mnist.py: a table, a picture, and whether the parameters are equal.

Each folder holds rank-N.json (measurements) and rank-N.pt (trained parameters) of every rank. Exits with 1 if
the parameters differ between the ranks of a run in any bit, or between the runs by more than float32 rounding.
"""

import argparse
import glob
import itertools
import json
import math
import os
import statistics
import sys
from dataclasses import dataclass

import torch

from braid.plot.page import Page
from braid.plot.panels import Bars, Lines

# Relative to the largest value in the same tensor. The two systems add in different orders.
RELATIVE_TOLERANCE = 1e-5
WARM_UP_STEPS = 10
WARM_UP_COMPUTATIONS = 2
WARM_UP_ALL_REDUCES = 2


@dataclass
class Run:
    """What one system did: seconds unless a name says otherwise."""

    name: str
    ranks: int
    gradient_bytes: int
    step: float
    compute: float
    all_reduce: float
    bus_gbit_per_second: float
    accuracy: float
    losses: list  # mean over the ranks, per step
    step_seconds: list  # of rank 0
    parameters: list  # one state_dict a rank

    @property
    def communication(self):
        return self.step - self.compute


def slowest_rank(ranks, key, warm_up):
    """Median over the repetitions of the time that the slowest rank took."""
    return statistics.median(max(times) for times in list(zip(*(rank[key] for rank in ranks)))[warm_up:])


def load(name, folder):
    paths = sorted(glob.glob(os.path.join(folder, "rank-*.json")))
    ranks = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            ranks.append(json.load(file))
    if not ranks or len(ranks) != ranks[0]["world_size"]:
        sys.exit(f"demo_report: {folder}: {len(ranks)} files rank-N.json, one per rank was expected")
    ranks.sort(key=lambda rank: rank["rank"])
    count = len(ranks)
    all_reduce = slowest_rank(ranks, "all_reduce_seconds", WARM_UP_ALL_REDUCES)
    gradient_bytes = ranks[0]["gradient_bytes"]
    return Run(
        name=name,
        ranks=count,
        gradient_bytes=gradient_bytes,
        step=slowest_rank(ranks, "step_seconds", WARM_UP_STEPS),
        compute=slowest_rank(ranks, "compute_seconds", WARM_UP_COMPUTATIONS),
        all_reduce=all_reduce,
        bus_gbit_per_second=2 * (count - 1) / count * gradient_bytes * 8 / all_reduce / 1e9,
        accuracy=ranks[0]["accuracy"],
        losses=[statistics.fmean(losses) for losses in zip(*(rank["losses"] for rank in ranks))],
        step_seconds=ranks[0]["step_seconds"],
        parameters=[
            torch.load(os.path.join(folder, f"rank-{rank}.pt"), weights_only=True) for rank in range(count)
        ],
    )


def ranks_identical(run):
    """The first tensor that is not the same in every bit on every rank, as a sentence; None if all are."""
    first = run.parameters[0]
    for rank, other in enumerate(run.parameters[1:], start=1):
        for name, tensor in first.items():
            # As integers: NaN would not equal itself, and 0.0 would equal -0.0.
            if not torch.equal(tensor.view(torch.int32), other[name].view(torch.int32)):
                return f"{run.name}: {name} differs between rank 0 and rank {rank}"
    return None


def largest_difference(one, two):
    """The largest difference of two runs' parameters, relative to the largest value in the tensor; its name."""
    worst = (0.0, "")
    if one.parameters[0].keys() != two.parameters[0].keys():
        sys.exit("demo_report: the two runs trained different models")
    for name, a in one.parameters[0].items():
        b = two.parameters[0][name]
        difference = ((a - b).abs().max() / b.abs().max()).item()
        if math.isnan(difference):
            return difference, name
        worst = max(worst, (difference, name))
    return worst


def print_table(runs):
    def row(title, values):
        print(f"{title:<34}" + "".join(f"{value:>16}" for value in values))

    def milliseconds(attribute):
        return [f"{getattr(run, attribute) * 1e3:.1f} ms" for run in runs]

    row("", [run.name for run in runs])
    row("step time", milliseconds("step"))
    row("  computation", milliseconds("compute"))
    row("  communication time", milliseconds("communication"))
    row(f"all-reduce of {runs[0].gradient_bytes / 1e6:.1f} MB", milliseconds("all_reduce"))
    row("bus bandwidth", [f"{run.bus_gbit_per_second:.2f} Gbit/s" for run in runs])
    row("final accuracy", [f"{run.accuracy * 100:.2f} %" for run in runs])


def print_equality(runs):
    """Prints whether the parameters are equal; returns it."""
    complaints = [complaint for complaint in map(ranks_identical, runs) if complaint]
    difference, name = largest_difference(*runs)
    if not difference <= RELATIVE_TOLERANCE:
        complaints.append(
            f"{runs[0].name} and {runs[1].name} differ in {name} by {difference:.1e} of its largest value"
        )
    if complaints:
        print("parameters equal: NO: " + "; ".join(complaints))
    else:
        print(
            f"parameters equal: yes (on all ranks in every bit; {runs[0].name} and {runs[1].name} within"
            f" {difference:.1e} of a tensor's largest value)"
        )
    return not complaints


def page_of(runs, network, nic_gbit):
    names = [run.name for run in runs]
    bandwidth = Bars(
        "bus bandwidth (Gbit/s)",
        limit=(nic_gbit, f"NIC: {nic_gbit:g} Gbit/s") if nic_gbit else None,
        groups=[f"all-reduce of {runs[0].gradient_bytes / 1e6:.0f} MB"],
        series={run.name: [run.bus_gbit_per_second] for run in runs},
    )
    steps = Bars(
        "training step (ms)",
        note="median",
        groups=names,
        series={
            "computation": [run.compute * 1e3 for run in runs],
            # The medians of a step and of its computation are not of the same step.
            "communication": [max(0.0, run.communication) * 1e3 for run in runs],
        },
        is_stacked=True,
    )
    loss = Lines(
        "training loss",
        "seconds of training steps",
        series={run.name: list(zip(itertools.accumulate(run.step_seconds), run.losses)) for run in runs},
    )
    took = "; ".join(f"{run.name}: {len(run.losses)} steps in {sum(run.step_seconds):.0f} s" for run in runs)
    reference, own = runs
    title = (
        f"The same script: {own.step * 1e3:.0f} ms a step through {own.name},"
        f" {reference.step * 1e3:.0f} ms through {reference.name}"
    )
    return Page(title, [bandwidth, steps, loss], [network, took], columns=3, panel_inches=3.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", action="append", nargs=2, required=True, metavar=("NAME", "FOLDER"),
                        help="give it twice: the reference first")
    parser.add_argument("--network", required=True, help="what the runs went over, for the titles")
    parser.add_argument("--nic-gbit", type=float, help="the NIC's rate, drawn as a line")
    parser.add_argument("--picture", required=True, help="the SVG to write")
    arguments = parser.parse_args()
    if len(arguments.run) != 2:
        parser.error("--run must be given twice")
    runs = [load(name, folder) for name, folder in arguments.run]

    print(f"\n{runs[0].ranks} trainers, {len(runs[0].losses)} steps, {arguments.network}\n")
    print_table(runs)
    equal = print_equality(runs)
    page_of(runs, arguments.network, arguments.nic_gbit).save(arguments.picture)
    print(f"picture: {arguments.picture}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
