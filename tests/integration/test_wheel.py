# SPDX-License-Identifier: Apache-2.0
"""The wheel: what is in it, and that it is all that a bare Debian needs for a job, without root and without a compiler.

In the same places: the Python package alone, which takes the library of the system or of BRAID_LIBRARY.
"""

import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest
from bare_tree import NODES, UBUNTU_RELEASES, BareTree, needs_bare_tree
from braid_build import BUILD, IS_BUILT, IS_SANITIZED, PATIENCE_S, REPOSITORY, ran
from cluster_tool import REFUSED
from real_cluster import until

pytestmark = pytest.mark.skipif(
    not IS_BUILT or IS_SANITIZED, reason="wheels are made of a plain build (BRAID_BUILD)"
)

BUILDER = REPOSITORY / "packaging" / "wheel" / "build"
PROGRAMS = ("braidd", "braidctl", "braid-bench")
OTHERS = ("trixie", *UBUNTU_RELEASES)
OTHER = pytest.mark.skipif(
    os.environ.get("BRAID_TEST_ALL") != "1", reason="one system is enough for a usual check: BRAID_TEST_ALL=1 runs it"
)

TRAINER = """\
import array, braid
with braid.Job("wheel", 0, 1, timeout=60) as job:
    (tensor,) = job.register([braid.TensorSpec("g", braid.DType.FLOAT32, 1000)])
    for step in range(20):
        ticket = job.submit(tensor, step, array.array("f", [step] * 1000))
        job.wait(ticket)
        assert set(job.result(ticket).cast("B").cast("f")) == {float(step)}
        job.release(ticket)
print(braid.__file__, braid._library.library()._name)
"""


def test_its_record_has_every_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (record,) = [name for name in archive.namelist() if name.endswith("/RECORD")]
        rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
        assert sorted(row[0] for row in rows) == sorted(archive.namelist())
        for name, digest, size in rows:
            if name != record:
                data = archive.read(name)
                own = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                assert (digest, size) == (f"sha256={own}", str(len(data))), name
        programs = {name for name in archive.namelist() if name.startswith("braid/bin/")}
        assert programs == {f"braid/bin/{name}" for name in PROGRAMS}
        assert all(archive.getinfo(name).external_attr >> 16 & 0o111 for name in programs)


def test_it_has_the_licence_of_every_library(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    licences = [name for name in names if "/licenses/" in name]
    libraries = [name for name in names if name.startswith("braid/lib/") and "libbraid" not in name]
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in licences)
    packages = {name.split("/")[-2] for name in licences}
    assert {"libucx0", "libuv1", "libssl3", "libstdc++6", "libsystemd0", "nlohmann-json3-dev"} <= packages
    assert len(libraries) > 20 and any("/ucx/libuct_" in name for name in libraries)


def test_its_name_says_which_c_library_it_needs(wheel, tmp_path):
    assert re.fullmatch(r"braid_comm-[\d.]+-py3-none-manylinux_2_34_(x86_64|aarch64)\.whl", wheel.name)
    command = [BUILDER, "--build", BUILD, "--output", tmp_path, "--python", sys.executable, "--glibc", "2.17"]
    refused = ran(command)
    assert refused.returncode == 1 and re.search(r"braid/\S+ needs glibc 2\.\d+", refused.stderr), refused.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--build", "/nowhere"], "/nowhere/bin/braidd is missing: build the project"),
        (["--python", "/nowhere/python"], "there is no program '/nowhere/python'"),
        (["--glibc", "much"], "'much' is no version of glibc, as 2.34"),
    ],
)
def test_what_it_cannot_do_is_said_before_it_begins(tmp_path, arguments, said):
    done = ran([BUILDER, "--output", tmp_path / "new", *arguments])
    assert done.returncode == 2 and said in done.stderr
    assert not (tmp_path / "new").exists()


def installed(wheel: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The programs of a new environment with the wheel."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=PATIENCE_S)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(pip, check=True, timeout=PATIENCE_S)
    return folder / "bin"


def test_its_commands_are_the_programs(wheel, tmp_path):
    programs = installed(wheel, tmp_path / "environment")
    for name in ("braid-run", "braid-plot"):
        assert f"usage: {name}" in ran([programs / name, "--help"]).stdout
    for name in PROGRAMS:
        assert ran([programs / name, "--version"]).stdout.startswith(f"{name} ")
    assert ran([programs / "braidctl", "--socket", "/nowhere", "status"]).returncode == 1
    assert ran([programs / "braidctl", "no-such-command"]).returncode == 2
    socket = tmp_path / "braidd.sock"
    daemon = subprocess.Popen(
        [programs / "braidd", "--set", f"client.socket={socket}", "--set", "client.group="],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until(lambda: socket.exists() or daemon.poll() is not None, "braidd")
        assert os.readlink(f"/proc/{daemon.pid}/exe").endswith("/braid/bin/braidd"), daemon.stderr.read()
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(PATIENCE_S) == 0
    finally:
        daemon.kill()
        daemon.communicate()
    # What Python ignores, the program need not: a reader that leaves early ends braidctl.
    (program,) = programs.parent.rglob("braid/bin/braidctl")
    program.write_text("#!/bin/sh\nexec grep SigIgn /proc/self/status\n")
    assert int(ran([programs / "braidctl"]).stdout.split()[1], 16) == 0


@needs_bare_tree
@pytest.mark.skipif(REFUSED is not None, reason=str(REFUSED))
@pytest.mark.parametrize("release", ["bookworm", *(pytest.param(each, marks=OTHER) for each in OTHERS)])
def test_a_bare_system_needs_no_more_for_a_job(wheel, tmp_path, release):
    with BareTree(tmp_path, wheel.parent, release, ["python3-venv"]) as tree:
        tree.run("useradd", "--create-home", "--home-dir", "/srv/alice", "alice")
        assert "/" not in tree.run("sh", "-c", "command -v gcc cc c++ ld || true")
        home = "/srv/alice"
        programs = f"{home}/environment/bin"
        tree.run("python3", "-m", "venv", f"{home}/environment", user="alice")
        pip = [f"{programs}/pip", "install", "--no-index", "--no-deps", f"/packages/{wheel.name}"]
        tree.run(*pip, user="alice")
        for name in PROGRAMS:
            assert tree.run(f"{programs}/{name}", "--version", user="alice").startswith(f"{name} ")
        assert "all_reduce" in tree.run(f"{programs}/braid-bench", "--help", user="alice")
        tree.write("/srv/trainer.py", TRAINER)
        socket = f"{home}/braidd.sock"
        log = tmp_path / "braidd.log"
        with open(log, "wb") as file:
            own = f"echo $$ >{home}/pid; exec {programs}/braidd --set client.socket={socket} --set client.group="
            daemon = tree.start("sh", "-c", own, node="a", user="alice", log=file)
        until(lambda: tree.exists(socket) or daemon.poll() is not None, "braidd")
        assert daemon.poll() is None, log.read_text()
        in_python = ["env", f"BRAID_SOCKET={socket}", f"{programs}/python", "/srv/trainer.py"]
        said = tree.run(*in_python, node="a", user="alice").split()
        assert all(path.startswith(f"{home}/environment/lib/") for path in said), said
        bench = ["env", f"BRAID_SOCKET={socket}", "RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=10.99.0.1"]
        bench += [f"{programs}/braid-bench", "all_reduce", "--sizes", "1000", "--iters", "3"]
        assert "1000" in tree.run(*bench, node="a", user="alice")
        tree.run("sh", "-c", f"kill $(cat {home}/pid)", user="alice")
        assert daemon.wait(PATIENCE_S) == 0, log.read_text()
        tree.run(f"{programs}/pip", "uninstall", "--yes", "braid-comm", user="alice")
        left = tree.run("find", f"{home}/environment", "-iname", "*braid*")
        assert left == ""


# A script of torch's tutorials: it does not know braid.
SCRIPT = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(100, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.full((8, 100), float(dist.get_rank()))).sum().backward()
    optimizer.step()
print("trained", float(sum(each.double().sum() for each in model.parameters())), flush=True)
dist.destroy_process_group()
"""


@needs_bare_tree
@pytest.mark.skipif(REFUSED is not None, reason=str(REFUSED))
def test_two_bare_nodes_train_with_the_wheel_and_leave_nothing(wheel, tmp_path):
    torch = pytest.importorskip("torch")
    mounts = {"/torch": pathlib.Path(torch.__file__).parents[1]}
    with BareTree(tmp_path, wheel.parent, include=["python3-venv"], mounts=mounts) as tree:
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        if not tree.exists(f"/usr/bin/{python}"):
            pytest.skip(f"the torch at hand is for {python}, which the tree does not have")
        home, programs = "/srv/alice", "/srv/alice/environment/bin"
        tree.run("useradd", "--create-home", "--home-dir", home, "alice")
        tree.run("python3", "-m", "venv", f"{home}/environment", user="alice")
        tree.write(f"{home}/environment/lib/{python}/site-packages/torch.pth", "/torch\n")
        tree.write("/srv/train.py", SCRIPT)
        pip = [f"{programs}/pip", "install", "--no-index", "--no-deps", f"/packages/{wheel.name}"]
        tree.run(*pip, user="alice")
        before = tree.run("find", "/", "-xdev", "-user", "alice", "-not", "-path", f"{home}/environment/*")
        logs, nodes = {}, []
        for rank, node in enumerate(NODES):
            tree.run("install", "-d", "-m", "700", "-o", "alice", f"/run/{node}")
            logs[node] = tmp_path / f"{node}.log"
            torchrun = [f"{programs}/python", "-m", "torch.distributed.run", "--nproc-per-node=1", "--nnodes=2"]
            torchrun += [f"--node-rank={rank}", f"--master-addr={NODES['a']}", "--master-port=29500"]
            with open(logs[node], "wb") as log:
                nodes.append(
                    tree.start(
                        *torchrun, "/srv/train.py", node=node, user="alice", log=log,
                        HOME=home, XDG_RUNTIME_DIR=f"/run/{node}", BRAID_ENABLE="1",
                    )  # fmt: skip
                )
        codes = [each.wait(PATIENCE_S) for each in nodes]
        said = {node: log.read_text() for node, log in logs.items()}
        assert codes == [0, 0], said
        assert all("no braidd on this node: started one for you" in text for text in said.values()), said
        (results,) = {tuple(re.findall("trained .*", text)) for text in said.values()}
        assert len(results) == 1, said
        assert "braid carries job train: 2 ranks" in said["a"], said
        until(lambda: not tree.is_running_as("alice"), "the daemons have ended")
        after = tree.run("find", "/", "-xdev", "-user", "alice", "-not", "-path", f"{home}/environment/*")
        left = {path for path in set(after.split()) - set(before.split()) if not path.startswith("/tmp/torch")}
        assert left == {f"/run/{node}" for node in NODES}  # and torch's own


def test_the_python_package_alone_takes_a_library_from_elsewhere(tmp_path):
    """`pip install ./python`, of a copy: setuptools leaves files there."""
    without = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    shutil.copytree(REPOSITORY / "python", tmp_path / "python", ignore=without)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    done = ran([*pip, "--target", tmp_path / "site", tmp_path / "python"])
    if "No module named" in done.stderr or "invalid command 'bdist_wheel'" in done.stderr:
        pytest.skip("this Python has no setuptools that makes wheels")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "site" / "bin").iterdir()} == {"braid-run", "braid-plot"}
    look = "import braid, braid._library as l; print(braid.__file__, l.library()._name)"
    library = str(BUILD / "lib" / "libbraid.so.0")
    said = ran(
        [sys.executable, "-c", look], cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "site"), "BRAID_LIBRARY": library},
    ).stdout.split()  # fmt: skip
    assert said[0].startswith(str(tmp_path / "site")) and said[1] == library
