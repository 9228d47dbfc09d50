# SPDX-License-Identifier: Apache-2.0
"""A rank, for one task after the other. As a user's script it says "gloo", and whether braid takes its place is said by
the environment. Its argument: the backend that must come of it."""

import datetime
import gc
import os
import sys

import torch
import torch.distributed as dist

from .. import worker
from . import stepping, training
from .systems import parse



def _kfac_steps(task: dict) -> dict:
    from . import kfac_stepping  # Over gloo nothing of braid is loaded.

    return kfac_stepping.run(task)


_TIMEOUT = datetime.timedelta(seconds=120)
_TASKS = {"train": training.run, "steps": stepping.run, "kfac": _kfac_steps}


def main() -> None:
    torch.set_num_threads(1)
    worker.serve({"rank": int(os.environ["RANK"]), "versions": {"torch": torch.__version__}}, _answer)


def _answer(task: dict) -> dict:
    os.environ["MASTER_PORT"] = str(task["port"])
    os.environ["BRAID_CODEC"] = parse(task["system"]).codec
    dist.init_process_group("gloo", timeout=_TIMEOUT)
    if dist.get_backend() != sys.argv[1]:
        sys.exit(f"the process group is {dist.get_backend()}'s, and not {sys.argv[1]}'s")
    answer = {"rank": dist.get_rank(), **_TASKS[task["kind"]](task)}
    dist.barrier()
    dist.destroy_process_group()
    gc.collect()  # Models and optimizers know each other, and are large.
    return answer


if __name__ == "__main__":
    main()
    worker.leave()
