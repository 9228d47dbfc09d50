# SPDX-License-Identifier: Apache-2.0
"""What machine this is, as far as its programs tell; and the service that lets two processes share a GPU."""

import contextlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from ..paths import ROOT
from .systems import python

_ASK_S = 20.0
_MPS_TRIAL_S = 60.0
_GPU_FIELDS = {
    "card": "name", "driver": "driver_version", "gpu_memory_mib": "memory.total", "gpu_memory_used_mib": "memory.used",
    "bus": "pci.bus_id", "pcie_generation": "pcie.link.gen.max", "pcie_width": "pcie.link.width.max",
}  # fmt: skip
_MPS_CONTROL = "nvidia-cuda-mps-control"


def _said(argv: list[str], timeout_s: float = _ASK_S, **options) -> str | None:
    """What a program says, None where there is none, or it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=True, **options)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def facts() -> dict[str, str | int | None]:
    """None: nobody could tell."""
    found = {
        "kernel": platform.release(),
        "distribution": _distribution(),
        "libc": " ".join(platform.libc_ver()),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30,
        "braid": _commit(),
        "compiler": _last_line(_said(["nvcc", "--version"])),
    }
    values = dict.fromkeys(_GPU_FIELDS)
    said = _said(["nvidia-smi", f"--query-gpu={','.join(_GPU_FIELDS.values())}", "--format=csv,noheader,nounits"])
    if said:
        values = dict(zip(_GPU_FIELDS, (part.strip() for part in said.splitlines()[0].split(",")), strict=False))
    return {**found, **values, "numa_node": _numa_node(values.get("bus"))}


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _last_line(text: str | None) -> str | None:
    return text.splitlines()[-1] if text else None


def _commit() -> str | None:
    """The bundle's, which has no repository."""
    try:
        with open(os.path.join(ROOT, "bundle.json"), encoding="utf-8") as file:
            return json.load(file)["braid"]
    except OSError:
        return _said(["git", "-C", ROOT, "describe", "--always", "--dirty"])


def _numa_node(bus: str | None) -> int | None:
    """nvidia-smi writes 00000000:3B:00.0 for what the kernel calls 0000:3b:00.0. -1: the machine does not say."""
    if bus is None:
        return None
    try:
        with open(f"/sys/bus/pci/devices/{bus.lower()[4:]}/numa_node", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


@contextlib.contextmanager
def shared_gpu() -> Iterator[bool]:
    """Starts NVIDIA's MPS, with which kernels of two processes run at the same time; without it they take turns. Says
    whether it works. It is ended with the context, and it is nobody else's: its folder is new."""
    if shutil.which(_MPS_CONTROL) is None:
        yield False
        return
    with tempfile.TemporaryDirectory(prefix="braid-mps-") as folder:
        own = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log"}
        for path in own.values():
            os.mkdir(path)
        os.environ.update(own)
        started = _said([_MPS_CONTROL, "-d"]) is not None
        works = started and _said(_trial(), _MPS_TRIAL_S) == "3"
        if not works:
            _end_mps(started)
            for name in own:
                del os.environ[name]
        try:
            yield works
        finally:
            if works:
                _end_mps(started)


def _trial() -> list[str]:
    """A kernel in a network namespace, where the workers are: MPS must be reached from there."""
    apart = ["unshare", "--net"]
    place = apart if _said([*apart, "true"]) is not None else []
    return [*place, python(), "-c", "import torch; print(int(torch.ones(3, device='cuda').sum()))"]


def _end_mps(started: bool) -> None:
    if started:
        _said([_MPS_CONTROL], input="quit\n")
