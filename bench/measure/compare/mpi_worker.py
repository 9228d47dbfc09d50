# SPDX-License-Identifier: Apache-2.0
"""A rank of an MPI library, through mpi4py."""

import re
import sys
from collections.abc import Callable

import numpy
from mpi4py import MPI

from .cases import Case
from .peer import Peer


class Mpi(Peer):
    def __init__(self):
        self._world = MPI.COMM_WORLD
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        name, _ = MPI.get_vendor()
        version = re.search(r"\d[\d.]*\w*", MPI.Get_library_version())
        self.versions = {name: version[0] if version else "?"}

    def prepare(self, case: Case) -> Callable[[], object]:
        values = numpy.full(case.elements(1), self.rank + 1, dtype=numpy.float32)
        self._world.Allreduce(MPI.IN_PLACE, values)
        if not (values == self.size * (self.size + 1) / 2).all():  # each rank puts in its number, counted from 1
            print("a sum is wrong", file=sys.stderr, flush=True)
            self._world.Abort(1)
        values.fill(0)
        return lambda: self._world.Allreduce(MPI.IN_PLACE, values)

    def barrier(self) -> None:
        self._world.Barrier()


if __name__ == "__main__":
    Mpi().serve()
