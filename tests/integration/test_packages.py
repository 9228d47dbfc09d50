# SPDX-License-Identifier: Apache-2.0
"""The packages in a bare Debian 12: installed, two nodes train through them, upgraded, removed, purged."""

import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator

import pytest
from bare_tree import NODES, BareTree, needs_bare_tree
from braid_build import BUILD, IS_BUILT, IS_SANITIZED, PATIENCE_S, REPOSITORY, ran
from cluster_tool import REFUSED
from document_links import broken_links
from real_cluster import until
from test_install import install

pytestmark = pytest.mark.skipif(
    not IS_BUILT or IS_SANITIZED, reason="packages are made of a plain build (BRAID_BUILD)"
)

BUILDER = str(REPOSITORY / "packaging" / "deb" / "build")
NAMES = {"braidd", "libbraid0", "libbraid-dev", "python3-braid", "braid-tools", "braid-dashboards", "braid-doc"}
BUILD_S = 400
COMPLETIONS = ("bash-completion/completions", "zsh/vendor-completions", "fish/vendor_completions.d")
SUFFIX = "+later"

CONFIGURATION = """\
control:
  cluster_key_file: /etc/braid/cluster.key
transport:
  rails: [eth0]
"""

# systemd itself does not run inside. What maintainer scripts ask of it is written down.
SYSTEMCTL = """\
#!/bin/sh
echo "$*" >>/var/log/systemctl.asked
case "$*" in *is-enabled*) echo enabled ;; esac
"""

# Sums of both ranks' numbers, through the package python3-braid.
TRAINER = """\
import array, os, sys
import braid
rank = int(sys.argv[1])
with braid.Job("packaged", rank, 2, master_address=os.environ["MASTER_ADDR"], timeout=60) as job:
    (tensor,) = job.register([braid.TensorSpec("g", braid.DType.FLOAT32, 1000)])
    for step in range(20):
        ticket = job.submit(tensor, step, array.array("f", [rank + step] * 1000))
        job.wait(ticket)
        assert set(job.result(ticket).cast("B").cast("f")) == {1.0 + 2 * step}
        job.release(ticket)
print("right")
"""


def builder(*arguments: str, program: str = BUILDER) -> subprocess.CompletedProcess:
    return ran([program, *arguments], timeout=BUILD_S)


def missing_tools() -> list[str]:
    return [name for name in ("dpkg-buildpackage", "dh", "dh_python3") if shutil.which(name) is None]


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> pathlib.Path:
    """The folder of the packages, made once for all tests."""
    if missing_tools():
        pytest.skip(f"not installed (scripts/setup): {', '.join(missing_tools())}")
    folder = tmp_path_factory.mktemp("packages")
    done = builder("--from", str(BUILD), "--output", str(folder))
    if "was built with another UCX" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert {path.name.split("_")[0] for path in folder.glob("*.deb")} == NAMES
    return folder


def make_upgrade(packages: pathlib.Path, scratch: pathlib.Path) -> None:
    """The same packages with a higher version, in the folder `upgrade` beside them."""
    (packages / "upgrade").mkdir()
    scratch.mkdir()
    for package in packages.glob("*.deb"):
        tree = scratch / package.stem
        subprocess.run(["dpkg-deb", "-R", package, tree], check=True, timeout=PATIENCE_S)
        control = tree / "DEBIAN" / "control"
        text = control.read_text(encoding="utf-8")
        (version,) = re.findall(r"^Version: (\S+)$", text, re.M)
        # Its own version, and those of its siblings that it asks for.
        text = re.sub(rf"(^Version: |(?:braid\S*|braidd) \((?:=|>=|<<) ){re.escape(version)}", rf"\g<0>{SUFFIX}", text,
                      flags=re.M)  # fmt: skip
        control.write_text(text, encoding="utf-8")
        subprocess.run(
            ["dpkg-deb", "-Zgzip", "--root-owner-group", "-b", tree, packages / "upgrade"],
            check=True, capture_output=True, timeout=PATIENCE_S,
        )  # fmt: skip


def test_words_are_completed_in_three_shells(packages):
    found = set()
    for package in packages.glob("*.deb"):
        listed = ran(["dpkg-deb", "--fsys-tarfile", str(package)], text=False).stdout
        with tarfile.open(fileobj=io.BytesIO(listed)) as archive:
            for name in archive.getnames():
                shell = re.match(rf"\./usr/share/({'|'.join(COMPLETIONS)})/(.+)", name)
                if shell is None:
                    continue
                text = archive.extractfile(name).read().decode()
                (program,) = re.findall(r"(?:# \w+ completion for|#compdef) (.+)", text)
                assert shell[2].strip("_").removesuffix(".fish") == program
                found.add((shell[1], program))
    programs = ("braidd", "braidctl", "braid-bench", "braid-run", "braid-plot")
    assert found == {(shell, program) for shell in COMPLETIONS for program in programs}


@pytest.mark.skipif(shutil.which("lintian") is None, reason="lintian is not installed (scripts/setup)")
def test_lintian_finds_neither_errors_nor_warnings(packages):
    (changes,) = packages.glob("*.changes")
    done = ran(["lintian", "--fail-on", "error,warning", "--tag-display-limit", "0", str(changes)], timeout=BUILD_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_in_the_documents_work(packages, tmp_path):
    (package,) = packages.glob("braid-doc_*.deb")
    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True, timeout=PATIENCE_S)
    installed = tmp_path / "usr" / "share" / "doc" / "braid-doc"
    found = sorted(installed.rglob("*.md"))
    assert {path.name for path in (REPOSITORY / "docs").glob("*.md")} | {"README.md"} <= {path.name for path in found}
    assert broken_links(installed, found) == []
    # Where the alerts say that they are.
    assert (installed / "docs" / "watching.md").exists()


class Installed:
    """The tree with the packages in it, and a braidd on each of its two nodes."""

    def __init__(self, tree: BareTree, logs: pathlib.Path):
        self.tree, self._logs = tree, logs
        self.daemons: dict[str, subprocess.Popen] = {}

    def configure(self) -> None:
        tree = self.tree
        tree.write("/etc/braid/braidd.yaml", CONFIGURATION)
        tree.write("/etc/braid/cluster.key", "0123456789abcdef" * 4 + "\n", mode=0o600)
        tree.run("chown", "braid:", "/etc/braid/cluster.key")
        tree.run("useradd", "--groups", "braid", "alice")
        tree.write("/srv/trainer.py", TRAINER)
        # As StateDirectory= of the unit does it.
        tree.run("install", "-d", "-o", "braid", "-g", "braid", "/var/lib/braid")
        assert "good" in tree.run("braidd", "--check-config", node="a", user="braid")

    def start_daemons(self) -> None:
        for node, address in NODES.items():
            own = (f"node.name={node}", f"node.address={address}", f"client.socket=/run/braid/{node}.sock")
            settings = [word for setting in own for word in ("--set", setting)]
            with open(self._logs / node, "ab") as log:
                self.daemons[node] = self.tree.start(
                    "/usr/bin/braidd", *settings, node=node, user="braid", log=log, STATE_DIRECTORY="/var/lib/braid"
                )
        for node, daemon in self.daemons.items():
            until(lambda: "is ready" in self.log(node) or daemon.poll() is not None, f"braidd on {node}")
            assert daemon.poll() is None, self.log(node)

    def log(self, name: str) -> str:
        return (self._logs / name).read_text(errors="replace")

    def train(self, *argv: str, says: str) -> None:
        """Rank 0 on one node, rank 1 on the other; `RANK` in argv stands for its number. Both must
        succeed, and rank 0 say something."""
        ranks = []
        for rank, node in enumerate(NODES):
            name = f"rank{rank}"
            with open(self._logs / name, "wb") as log:
                own = (word.replace("RANK", str(rank)) for word in argv)
                world = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": NODES["a"]}
                world["BRAID_SOCKET"] = f"/run/braid/{node}.sock"
                ranks.append(self.tree.start(*own, node=node, user="alice", log=log, **world))
        for process in ranks:
            assert process.wait(PATIENCE_S) == 0, "\n".join(map(self.log, ("rank0", "rank1", "a", "b")))
        assert says in self.log("rank0"), self.log("rank0")

    def train_both_ways(self) -> None:
        # It checks every sum.
        self.train("braid-bench", "all_reduce", "--sizes", "1000,1MB", "--iters", "5", says="1000000")
        self.train("python3", "/srv/trainer.py", "RANK", says="right")

    def capabilities_of_daemons(self) -> set[str]:
        status = "for pid in $(pidof braidd); do cat /proc/$pid/status; done"
        return set(re.findall(r"^Cap(?:Prm|Eff|Bnd):\s*(\w+)$", self.tree.run("sh", "-c", status), re.M))

    def pids(self) -> set[str]:
        return set(self.tree.run("sh", "-c", "pidof braidd || true").split())

    def asked_of_systemd(self) -> str:
        file = self.tree.root / "var/log/systemctl.asked"
        asked = file.read_text() if file.exists() else ""
        file.unlink(missing_ok=True)
        return asked


@contextlib.contextmanager
def installed_in(tmp_path: pathlib.Path, packages: pathlib.Path) -> Iterator[Installed]:
    with BareTree(tmp_path, packages) as tree:
        tree.apt("install", *(f"/packages/{path.name}" for path in packages.glob("*.deb")))
        yield Installed(tree, tmp_path)


def look_at_what_is_installed(installed: Installed) -> None:
    tree = installed.tree
    for program in ("braidd", "braidctl", "braid-bench"):
        assert program in tree.run(program, "--version")
    for program in ("braid-cluster", "braid-plot", "braid-run"):
        assert f"usage: {program}" in tree.run(program, "--help")
    assert tree.run("stat", "-c", "%U %G %a", "/run/braid") == "braid braid 755\n"
    assert tree.exists("/lib/systemd/system/braidd.service.d/nvidia.conf")
    # Inert: nothing of it is loaded by a program that does not ask for it.
    assert tree.run("python3", "-c", "import sys; print('braid' in sys.modules)") == "False\n"
    assert not tree.exists("/var/log/systemctl.asked")


def upgrade(installed: Installed, *options: str) -> tuple[str, str]:
    """What the upgrade said, and what it asked of systemd."""
    folder = installed.tree.root.parent / "packages-of-this-test" / "upgrade"
    said = installed.tree.apt("install", *options, *(f"/packages/upgrade/{path.name}" for path in folder.glob("*.deb")))
    return said, installed.asked_of_systemd()


def upgrade_leaves_the_daemons_alone(installed: Installed) -> None:
    before = installed.pids()
    said, asked = upgrade(installed)
    assert SUFFIX in installed.tree.run("dpkg-query", "-W", "braidd")
    assert "is still running" in said and "systemctl restart braidd" in said, said
    # Which does nothing where one runs.
    assert re.search(r"\bstart braidd\.service$", asked, re.M), asked
    assert "restart" not in asked and "stop" not in asked, asked
    assert installed.pids() == before and len(before) == 2
    # The old daemons serve the new programs.
    installed.train_both_ways()
    assert installed.tree.exists("/etc/braid/cluster.key")
    assert (installed.tree.root / "etc/braid/braidd.yaml").read_text() == CONFIGURATION


def upgrade_restarts_where_that_is_wanted(installed: Installed) -> None:
    installed.tree.write("/etc/default/braidd", "RESTART_ON_UPGRADE=yes\n")
    said, asked = upgrade(installed, "--reinstall")
    assert "restarting the daemon" in said, said
    assert re.search(r"\brestart braidd\.service$", asked, re.M), asked
    installed.tree.write("/etc/default/braidd", "RESTART_ON_UPGRADE=maybe\n")
    said, asked = upgrade(installed, "--reinstall")
    assert "RESTART_ON_UPGRADE is 'maybe'" in said and "is still running" in said, said
    assert "restart" not in asked, asked


def remove_and_purge(installed: Installed) -> None:
    tree = installed.tree
    tree.apt("remove", *NAMES)
    assert re.search(r"\bstop braidd\.service$", installed.asked_of_systemd(), re.M)
    assert not tree.exists("/usr/bin/braidd") and not tree.exists("/usr/share/braid-tools")
    assert tree.exists("/etc/braid/braidd.yaml") and tree.exists("/var/lib/braid")
    # The systemd that is not there would have ended them.
    tree.run("sh", "-c", "kill $(pidof braidd)")
    for node, daemon in installed.daemons.items():
        assert daemon.wait(PATIENCE_S) == 0, installed.log(node)
    tree.apt("purge", "braidd")  # the others have no configuration
    left = tree.run("find", "/", "-xdev", "-path", "/packages", "-prune", "-o", "-iname", "*braid*", "-print")
    # What the administrator has put there stays, and the user to whom it belongs.
    assert left.split() == ["/etc/braid"], left
    assert os.listdir(tree.root / "etc/braid") == ["cluster.key"]
    assert "braid" in tree.run("id", "braid")


@needs_bare_tree
@pytest.mark.skipif(REFUSED is not None, reason=str(REFUSED))
def test_from_installing_to_purging(packages, tmp_path):
    own = tmp_path / "packages-of-this-test"
    shutil.copytree(packages, own)
    make_upgrade(own, tmp_path / "repacked")
    with installed_in(tmp_path, own) as installed:
        look_at_what_is_installed(installed)
        installed.configure()
        installed.start_daemons()
        assert installed.capabilities_of_daemons() == {"0" * 16}
        installed.train_both_ways()
        # From here on the tree looks as if systemd ran in it.
        (installed.tree.root / "run/systemd/system").mkdir(parents=True, exist_ok=True)
        installed.tree.write("/bin/systemctl", SYSTEMCTL, mode=0o755)
        upgrade_leaves_the_daemons_alone(installed)
        upgrade_restarts_where_that_is_wanted(installed)
        remove_and_purge(installed)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_has_few_rights(tmp_path):
    install(tmp_path, "/usr")
    (tmp_path / "lib").symlink_to("usr/lib")
    done = ran(["systemd-analyze", "security", "--offline=true", "--no-pager", f"--root={tmp_path}", "braidd.service"])
    if "Unknown" in done.stderr or "unrecognized" in done.stderr:
        pytest.skip(f"this systemd-analyze cannot do that: {done.stderr.strip()}")
    (exposure,) = re.findall(r"Overall exposure level for braidd\.service: ([\d.]+)", done.stdout)
    assert float(exposure) <= 2.0, done.stdout
    # The clock's is ProtectClock's own, 195 is NVIDIA's.
    assert re.search(r"some special devices: char-rtc:r char-195:rw *[\d.]*$", done.stdout, re.M), done.stdout
