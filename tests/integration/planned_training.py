# SPDX-License-Identifier: Apache-2.0
"""Jobs that train until their daemons have changed the plan, which takes as long as it takes."""

import pathlib
import re

from real_cluster import Cluster, Node, Trainer, until

# A change is made for any predicted gain: whether plans differ by 3 % on this machine is noise.
ANY_GAIN = "debug.min_gain_percent=0"
# All that follows a change lies in steps after it.
STEPS_AFTER_A_CHANGE = 20


def changes_of(node: Node, job: str) -> dict[str, int]:
    """The plans that the node has taken in this job, by its log, and the steps they begin with."""
    line = rf"job '{re.escape(job)}': (plan \d+ by '\w+': .* from step (\d+) on)"
    return {text: int(step) for text, step in re.findall(line, node.log())}


def stop_after_a_change(trainers: list[Trainer], job: str, sign: pathlib.Path) -> None:
    """Waits for a change, then tells the trainers, which have a StopSign, when to end."""
    node = trainers[0].node

    def is_changed() -> bool:
        for trainer in trainers:
            assert trainer.process.poll() is None, f"it ended early:\n{trainer.output()}"
        return bool(changes_of(node, job))

    until(is_changed, f"job '{job}' changes its plan")
    unfinished = sign.with_suffix(".unfinished")
    unfinished.write_text(str(min(changes_of(node, job).values()) + STEPS_AFTER_A_CHANGE))
    unfinished.rename(sign)


def expect_changes(cluster: Cluster, placed: list[int], job: str, steps: int) -> None:
    """In `steps` steps the plan has changed, and on all nodes alike."""
    taken = []
    for index in sorted(set(placed)):
        # What would have begun later may have reached only some of them before the job ended.
        begun = {text for text, step in changes_of(cluster.nodes[index], job).items() if step < steps}
        assert begun, cluster.nodes[index].log()[-3000:]
        taken.append(begun)
    assert taken == taken[:1] * len(taken)
