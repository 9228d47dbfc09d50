# SPDX-License-Identifier: Apache-2.0
"""What a trainer says of braid: by default warnings, and at the start one line. BRAID_LOG asks for more, or less."""

from __future__ import annotations

import logging
import os
import sys

from braid.torch.environment.variables import WrongVariable, unknown

VARIABLE = "BRAID_LOG"
_LEVELS = {"warning": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
_log = logging.getLogger("braid")
_said: set[str] = set()


def set_up() -> None:
    """Gives the logger `braid` the level of BRAID_LOG, and a handler that writes to stderr. Without the variable
    the logger is the script's. Raises WrongVariable."""
    level = os.environ.get(VARIABLE, "")
    if not level:
        return
    if level.lower() not in _LEVELS:
        raise WrongVariable(f"{VARIABLE} is '{level}'; right are 'warning', 'info' and 'debug'")
    _log.setLevel(_LEVELS[level.lower()])
    if not any(isinstance(handler, _Handler) for handler in _log.handlers):
        _log.addHandler(_Handler())
        _log.propagate = False  # else a script that logs by itself would say each line twice


def is_first_of_node() -> bool:
    """Whether this process is the one of its node that says what concerns all of them."""
    return next(
        (os.environ[name] for name in ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
         if os.environ.get(name)), "0",
    ) == "0"  # fmt: skip


def tell_unknown_variables() -> None:
    """Once a node."""
    if is_first_of_node():
        for sentence in unknown(os.environ):
            _tell_once(sentence, sentence)


def announce(job: str, ranks: int, master_address: str) -> None:
    """That braid carries a process group; for rank 0. Where nobody listens to the logger, the first one of a process is
    printed."""
    is_alone = master_address.startswith(("127.", "[::1]")) or master_address == "::1"
    where = "within this node" if is_alone else f"between nodes, by the daemon at {master_address}"
    text = (
        f"braid carries job {job}: {ranks} rank{'' if ranks == 1 else 's'}, {where}; "
        "sparse tensors go over gloo"
    )
    if _log.isEnabledFor(logging.INFO):
        _log.info(text)
    elif not os.environ.get(VARIABLE):
        _tell_once(text, "announcement")


def _tell_once(sentence: str, about: str) -> None:
    if about not in _said:
        _said.add(about)
        print(sentence, file=sys.stderr, flush=True)


class _Handler(logging.StreamHandler):
    def __init__(self) -> None:
        super().__init__(sys.stderr)
        rank = os.environ.get("RANK") or os.environ.get("SLURM_PROCID") or ""
        where = f" rank {rank}" if rank else ""
        self.setFormatter(logging.Formatter(f"%(asctime)s braid{where} %(levelname)s: %(message)s"))
