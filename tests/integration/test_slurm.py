# SPDX-License-Identifier: Apache-2.0
"""Slurm's hooks, started as slurmd starts them, beside real daemons. No Slurm is needed: its programs are played."""

import os
import pathlib
import shutil
import stat
import subprocess

import pytest
from braid_build import BRAIDCTL, REPOSITORY, ran
from cluster_tool import is_running
from real_cluster import SUM_FOREVER, Node, needs_daemons, until, wait_until_running

FOLDER = REPOSITORY / "packaging" / "slurm"
# Nodes whose daemons must reach each other; without a key a daemon listens for its own node alone.
SEVERAL_NODES = "node[0-1]"
ONE_NODE = "node0"

pytestmark = [
    needs_daemons,
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd runs prolog and epilog as root"),
]


class Slurm:
    """A job's environment and settings on one node."""

    def __init__(self, node: Node, folder: pathlib.Path, job: int = 42):
        self.node, self.folder, self.job = node, folder, job
        self.key, self.tokens, self.conf = folder / "cluster.key", folder / "tokens", folder / "slurm.conf"
        self.key.write_text("0123456789abcdef0123456789abcdef\n")
        self.set()

    def set(self, **settings: str) -> None:
        usual = {
            "socket": self.node.socket, "cluster_key_file": self.key, "tokens": self.tokens, "braidctl": BRAIDCTL,
            "wait_seconds": "0", "control_port": self.control_port(),
        }  # fmt: skip
        self.conf.write_text("".join(f"{name}='{value}'\n" for name, value in {**usual, **settings}.items()))

    def control_port(self) -> str:
        given = [one.partition("=")[2] for one in self.node.daemon_command if one.startswith("control.port=")]
        return given[-1] if given else "7410"

    def run(self, hook: str, nodes: str = SEVERAL_NODES, **more: str) -> subprocess.CompletedProcess:
        environment = {
            "PATH": os.environ["PATH"], "BRAID_SLURM_CONF": str(self.conf), "SLURM_JOB_ID": str(self.job),
            "SLURM_JOB_UID": str(os.getuid()), "SLURM_JOB_PARTITION": "gpu", "SLURM_CLUSTER_NAME": "c",
            "SLURM_JOB_NODELIST": nodes, "SLURMD_NODENAME": self.node.name, **more,
        }  # fmt: skip
        return ran(self.node.enter([str(FOLDER / hook)]), env=environment)

    def task_environment(self, **more: str) -> dict[str, str]:
        done = self.run("task-prolog", **more)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert all(line.startswith("export ") for line in lines), done.stdout
        return dict(line.removeprefix("export ").split("=", 1) for line in lines)

    def refused(self, **more: str) -> str:
        done = self.run("prolog", **more)
        assert done.returncode == 1 and done.stdout == "", done
        assert f"braid: job {self.job}: this node cannot serve it: " in done.stderr
        assert not (self.tokens / str(self.job)).exists()
        return done.stderr


@pytest.fixture
def slurm(cluster_of, tmp_path):
    return Slurm(cluster_of(2).nodes[0], tmp_path)


def test_a_node_whose_daemon_serves_takes_the_job(slurm):
    for nodes in (SEVERAL_NODES, "node0,node1", ONE_NODE):
        done = slurm.run("prolog", nodes)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_node_is_taken_at_an_address_of_either_family(slurm, tmp_path):
    (tmp_path / "ss").write_text("""#!/bin/sh\nprintf 'LISTEN 0 128 %s 0.0.0.0:*\\n' "$LISTENS" | cut -d' ' -f1-4""")
    (tmp_path / "braidctl").write_text(
        """#!/bin/sh\necho '{"rails": ["a"], "rails_down": [], "node": {"address": "'$ADDRESS'"}}'\n"""
    )
    for name in ("ss", "braidctl"):
        (tmp_path / name).chmod(0o755)
    slurm.set(braidctl=str(tmp_path / "braidctl"), control_port="7410")
    path = f"{tmp_path}:{os.environ['PATH']}"
    said = slurm.refused(PATH=path, ADDRESS="2001:db8::7", LISTENS="[::1]:7410")
    assert "does not listen on [2001:db8::7]:7410" in said
    for address, listens in (
        ("192.0.2.7", "192.0.2.7:7410"), ("192.0.2.7", "0.0.0.0:7410"), ("192.0.2.7", "*:7410"),
        ("2001:db8::7", "[2001:db8::7]:7410"), ("2001:db8::7", "*:7410"), ("fe80::7%eth0", "[fe80::7]%eth0:7410"),
    ):  # fmt: skip
        done = slurm.run("prolog", PATH=path, ADDRESS=address, LISTENS=listens)
        assert (done.returncode, done.stderr) == (0, ""), (address, listens)


def test_without_a_daemon_the_node_is_refused(slurm, tmp_path):
    slurm.set(socket=str(tmp_path / "nobody.sock"))
    assert f"braidd does not answer on {tmp_path}/nobody.sock: " in slurm.refused()


def test_a_daemon_whose_rails_are_all_down_is_refused(slurm, tmp_path):
    (tmp_path / "braidctl").write_text(
        """#!/bin/sh\necho '{"rails": ["a", "b"], "rails_down": ["b", "a"], "node": {"address": "192.0.2.1"}}'\n"""
    )
    (tmp_path / "braidctl").chmod(0o755)
    slurm.set(braidctl=str(tmp_path / "braidctl"))
    assert "none of braidd's rails has a link" in slurm.refused()


def test_a_daemon_that_other_nodes_do_not_reach_serves_its_own_alone(slurm):
    slurm.set(control_port="9")
    said = slurm.refused()
    assert f"does not listen on {slurm.node.address}:9" in said and "control.cluster_key_file" in said
    assert slurm.run("prolog", ONE_NODE).returncode == 0


def test_only_jobs_of_its_partitions_are_looked_at(slurm, tmp_path):
    slurm.set(socket=str(tmp_path / "nobody.sock"), partitions="large gpu-2")
    for hook in ("prolog", "task-prolog", "epilog"):
        done = slurm.run(hook)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    slurm.refused(SLURM_JOB_PARTITION="large")


def test_all_nodes_come_to_one_token_and_other_jobs_to_another(slurm, cluster_of, tmp_path):
    tokens = []
    for number, (node, job) in enumerate([(0, 42), (1, 42), (0, 43)]):
        (folder := tmp_path / str(number)).mkdir()
        one = Slurm(cluster_of(2).nodes[node], folder, job)
        assert one.run("prolog").returncode == 0
        file = one.tokens / str(job)
        assert stat.S_IMODE(file.stat().st_mode) == 0o400
        tokens.append(file.read_text().strip())
        assert one.task_environment()["BRAID_JOB_TOKEN"] == tokens[-1]
        assert [path.name for path in one.tokens.iterdir()] == [str(job)]
    assert tokens[0] == tokens[1] != tokens[2] and len(tokens[0]) == 64
    (folder := tmp_path / "other key").mkdir()
    other = Slurm(cluster_of(2).nodes[0], folder)
    other.key.write_text("another key of this cluster\n")
    assert other.run("prolog").returncode == 0
    assert (other.tokens / "42").read_text().strip() not in tokens


def test_the_token_is_the_users(slurm):
    assert slurm.run("prolog", SLURM_JOB_UID="65534").returncode == 0
    assert (slurm.tokens / "42").stat().st_uid == 65534


def test_without_a_key_there_is_no_token(slurm):
    slurm.key.unlink()
    assert slurm.run("prolog").returncode == 0
    assert "BRAID_JOB_TOKEN" not in slurm.task_environment() and not slurm.tokens.exists()


def test_tasks_get_braid_and_keep_what_their_user_has_set(slurm):
    assert slurm.task_environment() == {
        "BRAID_SOCKET": slurm.node.socket, "BRAID_ENABLE": "1", "BRAID_JOB": "slurm-42",
    }  # fmt: skip
    own = {"BRAID_ENABLE": "0", "BRAID_JOB": "mine", "BRAID_SOCKET": slurm.node.socket, "BRAID_JOB_TOKEN": "t"}
    assert slurm.task_environment(**own) == {}


def test_without_a_socket_a_task_is_told_and_goes_on(slurm, tmp_path):
    slurm.set(socket=str(tmp_path / "nobody.sock"))
    done = slurm.run("task-prolog")
    assert done.returncode == 0
    assert done.stdout == f"print braid: no braidd on {slurm.node.name}: there is no socket {tmp_path}/nobody.sock\n"


def test_a_job_goes_through_all_of_it(slurm, cluster_of):
    cluster = cluster_of(2)
    environments = {}
    for index, node in enumerate(cluster.nodes):
        (folder := slurm.folder / str(index)).mkdir()
        hooks = Slurm(node, folder)
        assert hooks.run("prolog").returncode == 0
        environments[index] = hooks.task_environment()
    assert environments[0]["BRAID_JOB_TOKEN"] == environments[1]["BRAID_JOB_TOKEN"]
    names = ("BRAID_JOB_TOKEN", "BRAID_SOCKET")
    taken = {name: {index: one[name] for index, one in environments.items()} for name in names}
    trainers = cluster.start(
        SUM_FOREVER, job=environments[0]["BRAID_JOB"], environment={"SLURM_JOB_ID": "42"}, **taken
    )
    wait_until_running(trainers)
    assert cluster.nodes[0].status()["jobs"][0]["name"] == "slurm-42"

    # Another job's epilog leaves it alone, also one whose number begins with the same digits.
    for other in (4, 420):
        assert Slurm(cluster.nodes[0], slurm.folder / "0", other).run("epilog").returncode == 0
    assert all(trainer.process.poll() is None for trainer in trainers)

    for index, node in enumerate(cluster.nodes):
        hooks = Slurm(node, slurm.folder / str(index))
        hooks.set(wait_seconds="60")
        done = hooks.run("epilog")
        assert done.returncode == 0, done.stderr
        assert not node.status()["jobs"] and not any(hooks.tokens.iterdir())
    for trainer in trainers:
        trainer.end()  # killed, or told that the other one was


def test_epilog_kills_a_rank_that_goes_by_another_name(slurm, cluster_of):
    (trainer,) = cluster_of(2).start(SUM_FOREVER, nodes=[0], job="mine", environment={"SLURM_JOB_ID": "42"})
    wait_until_running([trainer])
    slurm.set(wait_seconds="60")
    done = slurm.run("epilog")
    assert done.returncode == 0 and f"process {trainer.pid} is still a rank of mine: killed" in done.stderr
    until(lambda: not is_running(trainer.pid), "the trainer has ended")


def test_epilog_drains_the_node_where_a_process_stays(slurm, cluster_of):
    (trainer,) = cluster_of(2).start(SUM_FOREVER, nodes=[0], job="mine", environment={"SLURM_JOB_ID": "42"})
    wait_until_running([trainer])
    assert slurm.run("epilog", SLURM_JOB_UID="12345").returncode == 0  # is none of that user's
    assert trainer.process.poll() is None
    done = slurm.run("epilog")  # which waits for no end
    assert done.returncode == 1 and f"still in braidd after 0 s: {trainer.pid} mine" in done.stderr


def test_epilog_does_not_believe_a_jobs_name(slurm, cluster_of):
    # Jobs of another allocation, or of none: users call their jobs what they like.
    trainers = [
        *cluster_of(2).start(SUM_FOREVER, nodes=[0], job="slurm-42-abc"),
        *cluster_of(2).start(SUM_FOREVER, nodes=[0], job="slurm-42", environment={"SLURM_JOB_ID": "43"}),
    ]
    wait_until_running(trainers)
    done = slurm.run("epilog")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(trainer.process.poll() is None for trainer in trainers)


GROUPS = pathlib.Path("/sys/fs/cgroup")


@pytest.fixture
def slurm_group():
    """Makes a control group as Slurm does for a job, and puts a process into it."""
    hierarchy = GROUPS if (GROUPS / "cgroup.controllers").exists() else GROUPS / "freezer"
    made = []

    def put(job: int, pid: int) -> None:
        group = hierarchy / f"braid-test-{os.getpid()}" / f"job_{job}" / "step_0"
        try:
            group.mkdir(parents=True)
            (group / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            pytest.skip(f"control groups cannot be made here: {error}")
        made.append((group, pid))

    yield put
    for group, pid in made:
        until(lambda pid=pid: not is_running(pid), f"process {pid} has ended")
        for folder in (group, group.parent):
            folder.rmdir()
    for folder in hierarchy.glob(f"braid-test-{os.getpid()}"):
        folder.rmdir()


def test_epilog_goes_by_the_control_group_where_there_is_one(slurm, cluster_of, slurm_group):
    # The environment is the process's own: the first one says that it is of another job, the second one of this.
    of_this, of_another = (
        cluster_of(2).start(SUM_FOREVER, nodes=[0], job=f"job {said}", environment={"SLURM_JOB_ID": said})[0]
        for said in ("43", "42")
    )
    wait_until_running([of_this, of_another])
    slurm_group(42, of_this.pid)
    slurm_group(421, of_another.pid)
    slurm.set(wait_seconds="60")
    done = slurm.run("epilog")
    try:
        assert done.returncode == 0 and f"process {of_this.pid} is still a rank of job 43: killed" in done.stderr
        assert of_another.process.poll() is None
    finally:
        for trainer in (of_this, of_another):
            trainer.kill()


def test_the_batch_script_starts_one_torchrun_per_node(tmp_path):
    """With srun, scontrol and torchrun played: what each node's torchrun is told."""
    programs = {
        "scontrol": 'test "$*" = "show hostnames node[0-1]" && printf "node0\\nnode1\\n"',
        "srun": 'test "$1" = --kill-on-bad-exit=1 && shift\n'
        'for SLURM_NODEID in 0 1; do export SLURM_NODEID; "$@"; done',
        "torchrun": 'echo "$@"',
    }
    for name, body in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nset -e\n{body}\n")
        (tmp_path / name).chmod(0o755)
    done = ran(
        [FOLDER / "train.sbatch", "train.py", "--name", "two words"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "node[0-1]", "SLURM_JOB_ID": "70012",
             "SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    places = [f"--nnodes 2 --node-rank {node} --nproc-per-node 8" for node in (0, 1)]
    script = "--master-addr node0 --master-port 20012 train.py --name two words"
    assert done.stdout.splitlines() == [f"{place} {script}" for place in places]


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_the_shell_scripts_are_sound():
    packaging = REPOSITORY / "packaging"
    scripts = [*FOLDER.iterdir(), packaging / "kubernetes" / "prometheus-rule", packaging / "prometheus" / "rules"]
    done = ran(["shellcheck", "-x", "-S", "warning", *scripts], cwd=REPOSITORY)
    assert done.returncode == 0, done.stdout
