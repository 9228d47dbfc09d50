# SPDX-License-Identifier: Apache-2.0
"""Metrics of jobs, links and flows, on real daemons: they say what is so, and go when it is over."""

import itertools
import json
import re

import pytest
from braid_build import braidctl
from planned_training import ANY_GAIN
from real_cluster import (
    ALL_FLOWS,
    SUM_FOREVER,
    Node,
    Trainer,
    end_running,
    expect_to_go_on,
    needs_daemons,
    until,
    wait_until_running,
)
from test_flows import CONTROL_PORT, FOREVER, kill_connection
from test_operations import metrics

pytestmark = needs_daemons

_job_numbers = itertools.count(1)

# So many steps of planned tensors; then it waits, its job still open, until the file `end` is there.
STEPS = """
job = open_job()
counts = [1 + (i * 7919) % 3000 for i in range(ARGUMENT["tensors"])]
counts[len(counts) // 2] = 400_000
handles = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, c, backward_order=i, planned=True)
                        for i, c in enumerate(counts)])
for step in range(ARGUMENT["steps"]):
    tickets = [job.submit(h, step, np.ones(c, np.float32)) for h, c in zip(handles, counts)]
    for ticket in tickets:
        ended(job, ticket)
say("RUNNING")
while not os.path.exists(ARGUMENT["end"]):
    time.sleep(0.02)
job.close()
"""
# Steps until the job is ended. Rank 1 submits its last tensor when all others have done so, and then some. Each rank
# tells of placed work, of which the last one has most.
ONE_IS_LATE = """
job = open_job()
handles = job.register([TensorSpec(f"layer{i}", DType.FLOAT32, 1000, backward_order=i, planned=True) for i in range(2)])

def flag(rank, step):
    return os.path.join(ARGUMENT, f"{rank}-{step}")

for step in range(1_000_000):
    mine = np.ones(1000, np.float32)
    tickets = [job.submit(handles[0], step, mine)]
    if RANK == 1:
        while not all(os.path.exists(flag(rank, step)) for rank in range(WORLD) if rank != RANK):
            time.sleep(0.001)
        time.sleep(0.1)  # so late it is
    tickets.append(job.submit(handles[1], step, mine))
    if RANK != 1:
        open(flag(RANK, step), "w").close()
    for ticket in tickets:
        ended(job, ticket)
    own = 0.02 if RANK == WORLD - 1 else 0.01
    load = WorkLoad(step + 1, 0.1, own, planned_seconds=0.01, makespan_seconds=0.012, bound_seconds=0.011)
    job.tell_work("inverses", [WorkItem(f"layer{RANK}.A", RANK, own)], load=load)
    if step == 0:
        say("RUNNING")
"""
PLAIN_STEPS = ("plan.planner=first", "tune.mode=off")


def labels_of(series: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', series))


def of_job(node: Node, job: str) -> dict[str, float]:
    """The node's series of this job: by name, those of ranks by name and rank."""
    found = {}
    for series, value in metrics(node).items():
        labels = labels_of(series)
        if labels.get("training_job") == job:
            name = series.partition("{")[0].removeprefix("braid_job_")
            found[name + (f" {labels['rank']}" if "rank" in labels else "")] = value
    return found


def of_links(node: Node, name: str) -> dict[str, float]:
    """The series of this name, by the peer; rails and what else there is are added up."""
    found: dict[str, float] = {}
    for series, value in metrics(node).items():
        if series.startswith(name + "{"):
            peer = labels_of(series)["peer"]
            found[peer] = found.get(peer, 0) + value
    return found


def plan_of(node: Node, job: str) -> dict:
    done = braidctl(node.socket, "plan", "--job", job, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["sets"][0]


def wait_for_steps(node: Node, job: str, steps: int) -> None:
    """A trainer may know of its last result before metrics do."""
    until(lambda: of_job(node, job).get("steps_total") == steps, f"{steps} steps are counted")


def status_of(node: Node, job: str) -> dict:
    (shown,) = [one for one in node.status()["jobs"] if one["name"] == job]
    return shown


class Stepping:
    """A job that has done its steps, and stays open until end()."""

    def __init__(self, cluster, path, steps: int, nodes: list[int], job: str | None = None, **environment: str):
        self.name = job or f"stepping-{next(_job_numbers)}"
        self._end = path / f"end-{next(_job_numbers)}"
        argument = {"tensors": 3, "steps": steps, "end": str(self._end)}
        self.trainers: list[Trainer] = cluster.start(
            STEPS, nodes=nodes, argument=argument, job=self.name, environment=environment
        )
        wait_until_running(self.trainers)

    def end(self) -> None:
        self._end.touch()
        for trainer in self.trainers:
            assert trainer.end() == 0, trainer.output()


def test_a_job_counts_its_steps_and_goes(cluster_of, tmp_path):
    cluster = cluster_of(2, *PLAIN_STEPS)
    steps = 30
    job = Stepping(cluster, tmp_path, steps, [0, 0, 1])
    for node, ranks in zip(cluster.nodes, ([0, 1], [2]), strict=True):
        wait_for_steps(node, job.name, steps)
        now = of_job(node, job.name)
        assert 0 < now["exposed_seconds_total"] <= now["step_seconds_total"]
        assert {name for name in now if " " in name} == {
            f"rank_{what}_seconds_total {rank}" for what in ("late", "wait") for rank in ranks
        }
        waits = [now[f"rank_wait_seconds_total {rank}"] for rank in ranks]
        # They differ by what is lost when doubles are printed.
        assert min(waits) >= now["exposed_seconds_total"] * 0.999
        assert max(waits) <= now["step_seconds_total"] * 1.001
        groups = len(plan_of(node, job.name)["groups"])
        assert (now["plan"], now["plan_groups"], now["tuning"]) == (0, groups, 0)
        assert now["iteration_measured_seconds"] > 0
        assert "iteration_predicted_seconds" not in now
        shown = status_of(node, job.name)
        assert now["operations_total"] == shown["operations_done"] == steps * groups
        assert now["operation_bytes_total"] == shown["bytes"]
        assert now["operations_pending"] == 0

        def has_its_memory(node=node) -> bool:
            shown, now = status_of(node, job.name), of_job(node, job.name)
            kinds = ("arena_memory_bytes", "result_memory_bytes")
            return all(now[kind] == shown[kind] > 0 for kind in kinds)

        until(has_its_memory, "metrics have the memory that status shows")
        assert not any("stepping" in name for name in node.status()["counters"]), "names of jobs"
    job.end()
    for node in cluster.nodes:
        until(lambda node=node: of_job(node, job.name) == {}, "the job's series are gone")


def test_a_job_that_fails_goes(cluster_of, tmp_path):
    cluster = cluster_of(2, *PLAIN_STEPS)
    job = Stepping(cluster, tmp_path, 3, [0, 1])
    assert all(of_job(node, job.name) for node in cluster.nodes)
    job.trainers[0].kill()
    for node in cluster.nodes:
        until(lambda node=node: of_job(node, job.name) == {}, "the job's series are gone")


def test_jobs_of_one_name_are_one_series_that_never_becomes_less(cluster_of, tmp_path):
    cluster = cluster_of(2, *PLAIN_STEPS)
    node = cluster.nodes[0]
    first = Stepping(cluster, tmp_path, 5, [0, 1], "twins", BRAID_JOB_TOKEN="one")
    second = Stepping(cluster, tmp_path, 7, [0, 0], "twins", BRAID_JOB_TOKEN="two")
    assert [one["name"] for one in node.status()["jobs"]].count("twins") == 2
    wait_for_steps(node, "twins", 12)
    assert "rank_wait_seconds_total 1" in of_job(node, "twins")
    first.end()
    until(lambda: [one["name"] for one in node.status()["jobs"]].count("twins") == 1, "one is over")
    assert of_job(node, "twins")["steps_total"] == 12
    until(lambda: of_job(cluster.nodes[1], "twins") == {}, "the other node had the first one only")
    second.end()
    until(lambda: of_job(node, "twins") == {}, "both are over")
    third = Stepping(cluster, tmp_path, 2, [0], "twins")
    wait_for_steps(node, "twins", 2)
    third.end()


def test_the_late_rank_is_the_one_that_the_others_wait_for(cluster_of, tmp_path):
    cluster = cluster_of(2, *PLAIN_STEPS)
    job = f"late-{next(_job_numbers)}"
    trainers = cluster.start(ONE_IS_LATE, nodes=[0, 0, 1, 1], argument=str(tmp_path), job=job)
    wait_until_running(trainers)

    def seconds(what: str) -> list[float]:
        """By rank."""
        series = {**of_job(cluster.nodes[0], job), **of_job(cluster.nodes[1], job)}
        return [series[f"rank_{what}_seconds_total {rank}"] for rank in range(4)]

    def is_told() -> bool:
        late, wait = seconds("late"), seconds("wait")
        others = (0, 2, 3)
        is_late = late[1] > 0.5 and late[1] > 2 * max(late[rank] for rank in others)
        return is_late and 2 * wait[1] < min(wait[rank] for rank in others)

    until(is_told, "rank 1 is late, and waits least")
    # What the other node's trainers wait for rank 1 is exposed there, and not where rank 1 is.
    exposed = [of_job(node, job)["exposed_seconds_total"] for node in cluster.nodes]
    assert exposed[0] < exposed[1]
    end_running(trainers)


def test_a_plan_that_changes_is_told(cluster_of):
    cluster = cluster_of(2, "plan.planner=exact", ANY_GAIN, "tune.mode=off")
    node = cluster.nodes[1]
    job = f"planned-{next(_job_numbers)}"
    argument = {"tensors": 60, "steps": 1_000_000, "end": ""}
    trainers = cluster.start(STEPS, argument=argument, job=job)
    until(lambda: of_job(node, job).get("plan", 0) > 0, "another plan holds")

    def is_what_braidctl_says() -> bool:
        shown, now = plan_of(node, job), of_job(node, job)
        return (
            (now["plan"], now["plan_groups"]) == (shown["plan"], len(shown["groups"]))
            and now["iteration_predicted_seconds"] == pytest.approx(shown["predicted_iteration_seconds"])
            and now["iteration_measured_seconds"] > 0
        )

    until(is_what_braidctl_says, "metrics have the plan that braidctl shows")
    end_running(trainers)


# What a metrics page is made of; each character of a label's value stands for itself or is escaped.
LINE = re.compile(r'\w+(?:\{\w+="(?:[^"\\\n]|\\["\\n])*"(?:,\w+="(?:[^"\\\n]|\\["\\n])*")*,?\})? \S+')
HOSTILE = ['say "hi"', "two\nlines", 'a\\b"} 7', "{job=x}", "tab\tand\rreturn", "日本 😀", "y" * 255]
SHOWN = [r"say \"hi\"", "two?lines", r"a\\b\"} 7", "{job=x}", "tab?and?return", "日本 😀", "y" * 255]


def test_names_of_jobs_may_be_anything(cluster_of):
    cluster = cluster_of(2, *PLAIN_STEPS)
    node = cluster.nodes[0]
    source = """
jobs = [open_job(name) for name in ARGUMENT]
for job in jobs:
    ended(job, job.submit(dynamic(job), 0, np.ones(3, np.float32)))
say("RUNNING")
time.sleep(600)
"""
    (trainer,) = cluster.start(source, nodes=[0], argument=HOSTILE)
    wait_until_running([trainer])
    page = node.run("curl", "-sf", f"http://{node.address}:9431/metrics")
    lines = [line for line in page.split("\n") if line and not line.startswith("#")]
    assert all(LINE.fullmatch(line) for line in lines), [one for one in lines if not LINE.fullmatch(one)]
    for name in SHOWN:
        assert lines.count(f'braid_job_operations_total{{training_job="{name}"}} 1') == 1, name
    assert sum(line.startswith("braid_job_operations_total{") for line in lines) == len(HOSTILE)
    trainer.kill()
    until(lambda: of_job(node, SHOWN[3]) == {}, "the jobs are over")


FLOW_SETTINGS = ("transport.flows_per_link=6", "collective.unit_bytes=256KiB", "debug.idle_link_seconds=1", ALL_FLOWS)


def wait_until_links_are_gone(cluster) -> None:
    def are_gone() -> bool:
        return not any(name.startswith("braid_link_") for node in cluster.nodes for name in metrics(node))

    until(are_gone, "no series of links is left")


def expect_links_at_rest(node: Node) -> None:
    def is_at_rest() -> bool:
        now, status = metrics(node), node.status()
        of_states = [(k, v) for k, v in now.items() if k.startswith("braid_link_flows{")]
        shown = [flow for flow in status["flows"] if flow["direction"] == "out"]
        return sum(v for _, v in of_states) == len(shown) and not any(
            v for k, v in of_states if 'state="open"' not in k
        )

    until(is_at_rest, "metrics have the flows that status shows, and all are open")
    for what in ("unacknowledged_bytes", "oldest_unacknowledged_seconds", "queued_bytes"):
        until(lambda what=what: not any(of_links(node, f"braid_link_{what}").values()), f"no {what}")


def test_links_count_what_they_carry_and_go_when_no_job_uses_them(cluster_of, tmp_path):
    cluster = cluster_of(3, *FLOW_SETTINGS)
    wait_until_links_are_gone(cluster)
    job = Stepping(cluster, tmp_path, 20, [0, 1, 2])
    for node in cluster.nodes:
        others = {other.name for other in cluster.nodes if other is not node}
        assert set(of_links(node, "braid_link_bytes_total")) == others

    def bytes_of(node: Node, peer: Node, direction: str) -> float:
        series = f'braid_link_bytes_total{{peer="{peer.name}",rail="eth0",direction="{direction}"}}'
        return metrics(node).get(series, 0)

    def adds_up() -> bool:
        pairs = [(a, b) for a in cluster.nodes for b in cluster.nodes if a is not b]
        sent = [bytes_of(a, b, "sent") for a, b in pairs]
        return sum(sent) > 0 and sent == [bytes_of(b, a, "received") for a, b in pairs]

    until(adds_up, "what one has sent another one has received")
    for node in cluster.nodes:
        expect_links_at_rest(node)
    job.end()
    wait_until_links_are_gone(cluster)


def connections_between(node: Node, peer: Node) -> list[tuple[str, str]]:
    """(local port, remote port) of flows between both, as `node` sees them."""
    found = []
    for line in node.run("ss", "-tnH", "state", "established").splitlines():
        local, remote = line.split()[2:4]
        ports = (local.rpartition(":")[2], remote.rpartition(":")[2])
        if str(CONTROL_PORT) not in ports and remote.rpartition(":")[0] == peer.address:
            found.append(ports)
    return found


def test_a_flow_that_dies_is_counted_at_its_link(cluster_of):
    cluster = cluster_of(3, *FLOW_SETTINGS)
    trainers = cluster.start(FOREVER)
    wait_until_running(trainers)
    node, peer = cluster.nodes[1], cluster.nodes[2]

    def shown() -> dict[str, int]:
        """The failures at the first of both nodes, by peer, that status tells."""
        found: dict[str, int] = {}
        for flow in node.status()["flows"]:
            if flow["direction"] == "out":
                found[flow["peer"]] = found.get(flow["peer"], 0) + flow["failures"]
        return found

    def counted() -> float:
        """Failures of the flows between both nodes."""
        failures = "braid_link_flow_failures_total"
        return of_links(node, failures).get(peer.name, 0) + of_links(peer, failures).get(node.name, 0)

    before = counted()
    if not kill_connection(node, connections_between(node, peer)[0]):
        pytest.skip("this kernel cannot destroy connections (CONFIG_INET_DIAG_DESTROY)")
    until(lambda: counted() > before, "it is counted")
    until(lambda: of_links(node, "braid_link_flow_failures_total") == shown(), "at the peer that status tells")
    expect_to_go_on(trainers)

    def is_whole() -> bool:
        flows = [(k, v) for one in cluster.nodes for k, v in metrics(one).items() if k.startswith("braid_link_flows{")]
        return not any(value for state, value in flows if 'state="open"' not in state)

    until(is_whole, "the flow is open again")
    end_running(trainers)


def test_the_rates_of_flows_are_shown_while_a_link_carries_much(cluster_of):
    cluster = cluster_of(3, *FLOW_SETTINGS)
    trainers = cluster.start("sum_forever(open_job(), count=3_000_000)")
    wait_until_running(trainers)
    slowest, median = (f"braid_link_{which}_flow_bytes_per_second" for which in ("slowest", "median"))

    def are_shown() -> bool:
        now = {name.partition("{")[0]: value for name, value in metrics(cluster.nodes[0]).items()}
        return 0 < now.get(slowest, 0) <= now.get(median, 0)

    until(are_shown, "rates are known")
    end_running(trainers)
    for node in cluster.nodes:
        until(lambda node=node: not of_links(node, slowest), "nothing is carried any more")


def test_an_unplanned_job_has_no_steps(cluster_of):
    cluster = cluster_of(2, *PLAIN_STEPS)
    job = f"unplanned-{next(_job_numbers)}"
    trainers = cluster.start(SUM_FOREVER, job=job)
    wait_until_running(trainers)
    now = of_job(cluster.nodes[0], job)
    assert now["operations_total"] > 0
    assert not {"steps_total", "step_seconds_total", "exposed_seconds_total", "plan", "tuning"} & set(now)
    end_running(trainers)
