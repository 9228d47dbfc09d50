# SPDX-License-Identifier: Apache-2.0
"""The guard of codecs, on real daemons: it measures what they lose, and sends back to plain what loses too much."""

import itertools
import json
import pathlib
import re

import pytest
from braid_build import braidctl
from planned_training import ANY_GAIN, STEPS_AFTER_A_CHANGE
from real_cluster import Cluster, Node, Trainer, needs_daemons, until
from test_operations import metrics

pytestmark = needs_daemons

NODES = 3
TENSORS = 8
# Elements grow by 1 to 8 in each step, of which this much is sent.
MUCH_TOO_SMALL = "2bit:threshold=0.0001"
_job_numbers = itertools.count(1)

# Sums of whole numbers: they are exact as long as nothing is lost of them. Each third tensor has no codec. Until the
# stop sign; tells from which step on all sums were exact.
TRAIN = f"""
job = open_job()
counts = [1000 + (i * 7919) % 3000 for i in range({TENSORS})]
counts[{TENSORS} // 2] = 300_000
codecs = ["" if i % 3 == 2 else ARGUMENT["codec"] for i in range({TENSORS})]
handles = job.register([TensorSpec(f"layer{{i}}", DType.FLOAT32, c, backward_order=i, planned=True, codec=k)
                        for i, (c, k) in enumerate(zip(counts, codecs))])

def gradient(rank, i):
    random = np.random.default_rng(1000 * rank + i)
    return (random.integers(1, 9, counts[i]) * random.choice([-1, 1], counts[i])).astype(np.float32)

exact = [sum(gradient(rank, i) for rank in range(WORLD)) for i in range({TENSORS})]
mine = [gradient(RANK, i) for i in range({TENSORS})]
sign = StopSign(job, ARGUMENT["stop"])
sha = hashlib.sha256()
step = exact_from = plain_wrong = 0
while not sign.is_reached(step):
    tickets = [job.submit(h, step, m, reduction=Reduction.SUM) for h, m in zip(handles, mine)]
    results = [ended(job, ticket) for ticket in tickets]
    sha.update(b"".join(results))
    right = [np.array_equal(np.frombuffer(r, np.float32), e) for r, e in zip(results, exact)]
    step += 1
    if not all(right):
        exact_from = step
    plain_wrong += sum(not good for good, codec in zip(right, codecs) if not codec)
job.close()
report(steps=step, exact_from=exact_from, plain_wrong=plain_wrong, digest=sha.hexdigest())
"""
CODED = sum(i % 3 != 2 for i in range(TENSORS))

ENDED = re.compile(
    r"warn job '(?P<job>[^']+)': '(?P<first>[^']+)'(?: and (?P<more>\d+) more tensors?)? goe?s? without the codec "
    r"(?P<codec>\S+) from step (?P<step>\d+) on: its (?P<what>\w+) is (?P<measured>\S+), and the "
    r"coordinator's guard\.limits has (?P<allowed>\S+)"
)


class Guarded:
    """A job that trains until stop()."""

    def __init__(self, cluster: Cluster, path: pathlib.Path, codec: str):
        self.cluster, self._path = cluster, path / "stop"
        self.job = f"guarded-{next(_job_numbers)}"
        argument = {"codec": codec, "stop": str(self._path)}
        self.trainers: list[Trainer] = cluster.start(
            TRAIN, nodes=list(range(NODES)), argument=argument, job=self.job
        )

    @property
    def coordinator(self) -> Node:
        return self.cluster.nodes[0]

    def until(self, condition, what: str) -> None:
        def is_so() -> bool:
            for trainer in self.trainers:
                assert trainer.process.poll() is None, f"it ended early:\n{trainer.output()}"
            return condition()

        until(is_so, what)

    def ended_codecs(self, node: Node) -> list[dict]:
        """What the node's log says of this job."""
        return [m.groupdict() for m in ENDED.finditer(node.log()) if m["job"] == self.job]

    def tensors_ended(self, node: Node) -> int:
        return sum(1 + int(one["more"] or 0) for one in self.ended_codecs(node))

    def series(self, node: Node) -> dict[str, float]:
        """The node's metrics of this job: name and codec."""
        found = {}
        for name, value in metrics(node).items():
            if labels := re.fullmatch(r'(\w+)\{training_job="([^"]+)",codec="([^"]+)"\}', name):
                if labels[2] == self.job:
                    found[labels[1], labels[3]] = value
        return found

    def plan(self, node: Node) -> dict:
        done = braidctl(node.socket, "plan", "--job", self.job, "--format", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["sets"][0]

    def table(self, node: Node) -> str:
        done = braidctl(node.socket, "plan", "--job", self.job)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def steps_begun(self) -> int:
        jobs = self.coordinator.status()["jobs"]
        return sum(one["steps_done"] for one in jobs if one["name"] == self.job)

    def stop(self, step: int) -> list[dict]:
        """At this step, or where the job is if that is later."""
        unfinished = self._path.with_suffix(".unfinished")
        unfinished.write_text(str(step))
        unfinished.rename(self._path)
        return [trainer.result() for trainer in self.trainers]


@pytest.fixture
def guarded(cluster_of, tmp_path):
    """guarded(codec, *settings): a job on three nodes whose codecs are sampled in each fourth step."""
    return lambda codec, *settings: Guarded(
        cluster_of(NODES, "debug.guard_every_steps=4", *settings), tmp_path, codec
    )


@pytest.mark.parametrize(
    "settings",
    [("plan.planner=first", "tune.mode=off"), ("plan.planner=exact", ANY_GAIN)],
    ids=["first plan", "planned and tuned"],
)
def test_a_codec_that_saturates_ends_on_all_nodes_at_one_step(guarded, settings):
    job = guarded(MUCH_TOO_SMALL, "guard.limits=saturation=0.5", *settings)
    nodes = job.cluster.nodes
    before = metrics(job.coordinator)["braid_guard_plain_groups_total"]
    job.until(lambda: all(job.tensors_ended(n) == CODED for n in nodes), "codecs have ended on all nodes")
    ended = job.ended_codecs(job.coordinator)
    for one in ended:
        assert one["codec"] == MUCH_TOO_SMALL and one["what"] == "saturation"
        assert float(one["measured"]) > 0.9
        assert float(one["allowed"]) == 0.5
    for node in nodes:
        assert job.ended_codecs(node) == ended, "each node's log says the same, once"
        plan = job.plan(node)
        assert {one["codec"] for one in plan["codecs"]} == {"none"}
        assert sum(len(one["tensors"]) for one in plan["plain"]) == CODED
        assert {one["from_step"] for one in plan["plain"]} == {int(one["step"]) for one in ended}
        assert f"plain from step {ended[0]['step']} on: " in job.table(node)
    assert metrics(job.coordinator)["braid_guard_plain_groups_total"] == before + len(ended)
    last = max(int(one["step"]) for one in ended)
    results = job.stop(last + STEPS_AFTER_A_CHANGE)
    assert len({result["digest"] for result in results}) == 1
    assert {result["exact_from"] for result in results} == {last}
    assert {result["plain_wrong"] for result in results} == {0}


# Sampled often enough for three readings in a row.
STEPS = 40


def expect_to_stay(job: Guarded, codec: str) -> dict[str, float]:
    """The codec is still there after some readings; returns the last of those, which metrics and braidctl tell."""
    job.until(lambda: job.steps_begun() > STEPS, "some steps")
    job.until(lambda: ("braid_codec_cosine", codec) in job.series(job.coordinator), "a reading")
    series = {name: value for (name, _), value in job.series(job.coordinator).items()}
    plan = job.plan(job.coordinator)
    assert plan["plain"] == [] and codec in {one["codec"] for one in plan["codecs"]}
    assert plan["guard"]["is_coordinator"] and plan["guard"]["every_steps"] == 4
    # Another plan's groups may have no reading yet.
    readings = [one["reading"] for one in plan["codecs"] if one["reading"] is not None]
    assert all(set(one) == {"step", "residual", "cosine", "saturation", "not_finite"} for one in readings)
    assert "what codecs lose is measured every 4 steps" in job.table(job.coordinator)
    other = job.cluster.nodes[1]
    assert not job.plan(other)["guard"]["is_coordinator"]
    assert f"what codecs lose is known to node '{job.coordinator.name}'" in job.table(other)
    assert job.series(other) == {}
    results = job.stop(1)
    assert len({result["digest"] for result in results}) == 1
    assert all(job.tensors_ended(node) == 0 for node in job.cluster.nodes)
    assert all(result["exact_from"] == result["steps"] for result in results), "it has lost something"
    until(lambda: job.series(job.coordinator) == {}, "the metrics of the job are gone")
    return series


def test_a_codec_that_loses_little_stays(guarded):
    limits = ("guard.limits=residual=1,cosine=0.9,saturation=0.001",)
    series = expect_to_stay(guarded("int8", "plan.planner=first", *limits), "int8")
    assert series["braid_codec_residual_ratio"] == 0
    assert series["braid_codec_saturation_ratio"] == 0
    assert 0.99 < series["braid_codec_cosine"] <= 1


def test_without_limits_each_codec_stays(guarded):
    job = guarded(MUCH_TOO_SMALL, "guard.limits=none")
    series = expect_to_stay(job, MUCH_TOO_SMALL)
    assert series["braid_codec_saturation_ratio"] > 0.9
    assert series["braid_codec_residual_ratio"] > 1


def test_where_nothing_is_sampled_no_codec_ends(guarded):
    job = guarded(MUCH_TOO_SMALL, "guard.limits=saturation=0.5", "debug.guard_every_steps=0")
    job.until(lambda: job.steps_begun() > STEPS, "some steps")
    assert "what codecs lose is not measured" in job.table(job.cluster.nodes[1])
    assert job.series(job.coordinator) == {}
    job.stop(1)
    assert all(job.tensors_ended(node) == 0 for node in job.cluster.nodes)
