# SPDX-License-Identifier: Apache-2.0
"""A rank of torch.distributed with one backend: the only argument."""

import datetime
import os
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist

from .. import worker
from .cases import Case
from .peer import Peer
from .torch_collectives import prepare

_TIMEOUT = datetime.timedelta(seconds=120)


class TorchPeer(Peer):
    def __init__(self, backend: str):
        self._backend = backend
        torch.set_num_threads(1)
        self.versions = {"torch": torch.__version__}
        if backend == "braid":
            _register_braid()
        dist.init_process_group(backend, timeout=_TIMEOUT)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def prepare(self, case: Case) -> Callable[[], object]:
        prepared = prepare(case)
        prepared.run()
        if not prepared.holds():
            sys.exit(f"{case.collective} of {case.dtype} over {self._backend}: rank {self.rank} has a wrong result")
        prepared.settle()
        return prepared.run

    def barrier(self) -> None:
        dist.barrier()


def _register_braid() -> None:
    import braid.torch

    wanted = os.environ["BRAID_COMPARE_PYTHON"]
    if not os.path.realpath(braid.__file__).startswith(os.path.realpath(wanted) + os.sep):
        sys.exit(f"braid is of {braid.__file__}, and wanted is that of {wanted}")
    braid.torch.register()


if __name__ == "__main__":
    TorchPeer(sys.argv[1]).serve()
    dist.destroy_process_group()
    worker.leave()
