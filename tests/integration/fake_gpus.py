# SPDX-License-Identifier: Apache-2.0
"""GPUs that a test makes up: tests/fake_nvml in place of NVIDIA's library, and the file that it reads."""

import os
import pathlib

import pytest
from braid_build import BUILD

LIBRARY = BUILD / "lib" / "fake_nvml"
needs_fake_nvml = pytest.mark.skipif(not LIBRARY.exists(), reason="the build has no fake_nvml (BRAID_TESTS=OFF)")

HEAT = 0x40
POWER_CAP = 0x4


class FakeGpus:
    """`gpus.set(1, clock=1140, reasons=HEAT)` holds from the daemon's next reading on."""

    def __init__(self, folder: pathlib.Path, count: int):
        self._path = folder / "gpus"
        self._count = count
        self._of_gpu: list[dict] = [{} for _ in range(count)]
        self._lines: list[str] = []
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(LIBRARY), "FAKE_NVML_FILE": str(self._path)}

    def set(self, gpu: int, **values) -> None:
        """What one GPU tells: tests/fake_nvml/fake_nvml.cpp lists; None takes it back."""
        self._of_gpu[gpu] |= values
        self._write()

    def say(self, *lines: str) -> None:
        """`hang 1`, `fail FUNCTION CODE`: in place of those that were said before."""
        self._lines = list(lines)
        self._write()

    def _write(self) -> None:
        lines = [f"gpus {self._count}", *self._lines]
        for gpu, values in enumerate(self._of_gpu):
            lines += [f"{gpu} {key} {value}" for key, value in values.items() if value is not None]
        following = self._path.with_suffix(".next")
        following.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.replace(following, self._path)
