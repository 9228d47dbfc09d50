# SPDX-License-Identifier: Apache-2.0
"""Where things are: in this checkout, and in another version of it."""

import dataclasses
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
RELEASE = os.path.join(ROOT, "build", "release")
VENV_PYTHON = os.path.join(ROOT, "build", "venv", "bin", "python")
DIGITS = os.path.join(ROOT, "build", "digits", "digits.csv.gz")
FASHION_MNIST = "/usr/share/datasets/fashion-mnist"


@dataclasses.dataclass(frozen=True)
class Installation:
    """One version of braid: a build, and the Python package that goes with it."""

    build: str
    python: str

    @property
    def library(self) -> str:
        return os.path.join(self.build, "lib", "libbraid.so.0")

    def program(self, name: str) -> str:
        return os.path.join(self.build, "bin", name)


def installation_of(checkout: str, build: str | None = None) -> Installation:
    return Installation(build or os.path.join(checkout, "build", "release"), os.path.join(checkout, "python"))
