# SPDX-License-Identifier: Apache-2.0
"""A bare Debian or Ubuntu below a folder, with two nodes in it, joined by a cable: where packages are installed.

Everything runs below one process, the first of its PID namespace, which ends when the test does: with it end all
processes, mounts and network namespaces. The host sees none of the mounts.
"""

import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence

import pytest
from braid_build import PATIENCE_S, ran

NODES = {"a": "10.99.0.1", "b": "10.99.0.2"}
OWN = "bookworm"  # Debian 12
SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources")
# Ubuntu's keys are not among Debian's packages; nothing of such a tree outlives its test.
UBUNTU = "deb [trusted=yes] http://archive.ubuntu.com/ubuntu {} main universe"
UBUNTU_RELEASES = ("jammy", "noble")  # 22.04, 24.04
# Packages come over the network.
DOWNLOAD_S = 400
_SMALL = [f"path-exclude=/usr/share/{folder}/*" for folder in ("locale", "man", "doc")] + ["force-unsafe-io"]

# $1 is the tree, which becomes the root of a mount namespace of its own; behind it come paths in it, each with the
# folder of the host that is seen there. What a path is called there, any process of it sees in the same way, also in
# /proc/PID/exe.
_KEEPER = r"""
set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
cd "$1"
mkdir -p old
shift
while [ $# -gt 0 ]; do
  mkdir -p ".$1"
  mount --bind "$2" ".$1"
  mount -o remount,bind,ro ".$1"
  shift 2
done
pivot_root . old
umount -l /old
rmdir /old
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
for node in a b; do ip netns add $node; done
ip -n a link add eth0 type veth peer name eth0 netns b
ip -n a address add 10.99.0.1/24 dev eth0
ip -n b address add 10.99.0.2/24 dev eth0
for node in a b; do ip -n $node link set lo up; ip -n $node link set eth0 up; done
echo ready
read -r _
"""


def _why_not() -> str | None:
    if os.geteuid() != 0:
        return "a bare Debian needs root"
    missing = [name for name in ("mmdebstrap", "unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed (scripts/setup)"
    if _sources() is None:
        return f"no apt sources of Debian 12 are in {' or '.join(SOURCES)}"
    return None


def _sources() -> str | None:
    """Those of this machine, if they are of Debian 12."""
    for path in map(pathlib.Path, SOURCES):
        if path.exists() and OWN in path.read_text(encoding="utf-8"):
            return str(path)
    return None


REFUSED = _why_not()
needs_bare_tree = pytest.mark.skipif(REFUSED is not None, reason=str(REFUSED))


class BareTree:
    """`packages` is a folder, /packages inside; `include`: packages of the distribution that are in it from the
    start, with what they depend on; `mounts`: other folders of the host, by the path at which they are inside."""

    def __init__(
        self, folder: pathlib.Path, packages: pathlib.Path, release: str = OWN, include: Sequence[str] = (),
        mounts: Mapping[str, pathlib.Path] | None = None,
    ):  # fmt: skip
        self.root, self._mounts = folder / "tree", {"/packages": packages, **(mounts or {})}
        self._release, self._include = release, ["iproute2", *include]
        self._keeper: subprocess.Popen | None = None

    def __enter__(self) -> "BareTree":
        try:
            self._make()
            self._start_keeper()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        if self._keeper is not None:
            # The first process of the PID namespace reads from it, and takes all others with it.
            self._keeper.stdin.close()
            try:
                self._keeper.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._keeper.kill()
                self._keeper.wait()
                raise
        if self.root.exists():
            shutil.rmtree(self.root)

    def _make(self) -> None:
        command = ["timeout", "--kill-after=30", str(DOWNLOAD_S)]  # it ends what it has started
        command += ["mmdebstrap", "--variant=minbase", "--mode=root", "--format=directory"]
        command += [f"--include={','.join(self._include)}"]
        command += [f"--dpkgopt={option}" for option in _SMALL]
        command += ["--aptopt=APT::Install-Recommends false", "--aptopt=Acquire::Retries 3"]
        command += ['--aptopt=Acquire::Languages "none"']
        command += ["--skip=cleanup/apt/lists", self._release, str(self.root)]
        if self._release in UBUNTU_RELEASES:
            sources = UBUNTU.format(self._release)
        else:
            sources = pathlib.Path(_sources()).read_text(encoding="utf-8").replace(OWN, self._release)
        done = ran([*command, "-"], timeout=2 * DOWNLOAD_S, input=sources)
        if done.returncode != 0:
            pytest.skip(f"no bare Debian can be made here: {' | '.join(done.stderr.strip().splitlines()[-4:])}")
        # apt inside asks the same name servers.
        shutil.copy("/etc/resolv.conf", self.root / "etc" / "resolv.conf")

    def _start_keeper(self) -> None:
        apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
        mounts = [str(each) for pair in self._mounts.items() for each in pair]
        self._keeper = subprocess.Popen(
            [*apart, "bash", "-c", _KEEPER, "keeper", str(self.root), *mounts],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if self._keeper.stdout.readline() != "ready\n":
            self._keeper.stdin.close()
            raise AssertionError(f"the tree cannot be entered: {self._keeper.stderr.read()}")
        tool = self._keeper.pid
        (self._first,) = pathlib.Path(f"/proc/{tool}/task/{tool}/children").read_text().split()

    def command(self, argv: list[str], node: str | None = None, user: str | None = None) -> list[str]:
        """What runs `argv` inside: on a node, or with the host's network; as a user without
        capabilities, or as root."""
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--no-new-privs"]
        as_user += ["--bounding-set=-all", "--inh-caps=-all"]
        place = ["ip", "netns", "exec", node] if node else []
        return ["nsenter", "-t", self._first, "-m", "-p", *place, *(as_user if user else []), *argv]

    @staticmethod
    def environment(**more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {**kept, "PATH": path, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **more}

    def _run(self, *argv: str, timeout: float = PATIENCE_S, **where) -> subprocess.CompletedProcess:
        return subprocess.run(
            self.command(list(argv), **where), env=self.environment(), stdin=subprocess.DEVNULL, timeout=timeout,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip

    def run(self, *argv: str, **where) -> str:
        """What it said. It must succeed, in `timeout` seconds."""
        done = self._run(*argv, **where)
        assert done.returncode == 0, f"{' '.join(argv)} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def start(self, *argv: str, node: str, user: str, log, **variables: str) -> subprocess.Popen:
        return subprocess.Popen(
            self.command(list(argv), node=node, user=user), env=self.environment(**variables),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def apt(self, *argv: str) -> str:
        done = self._run("apt-get", "-y", "-o", "Dpkg::Use-Pty=0", *argv, timeout=DOWNLOAD_S)
        if done.returncode != 0 and (why := re.search(r"^E: (?:Failed|Unable) to fetch.*", done.stdout, re.M)):
            pytest.skip(f"the distribution cannot be reached: {why[0]}")
        assert done.returncode == 0, f"apt-get {' '.join(argv)} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)

    def is_running_as(self, user: str) -> bool:
        """Whether any process of this user is left inside."""
        looks = f'for each in /proc/[0-9]*; do [ "$(stat -c %U $each 2>/dev/null)" != {user} ] || echo $each; done'
        return self.run("sh", "-c", looks) != ""

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.root / path.lstrip("/"))


