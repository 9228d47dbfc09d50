# SPDX-License-Identifier: Apache-2.0
"""braid-run: runs a training script as it is, with braid under torch.distributed."""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys
from typing import NoReturn

from braid import __version__
from braid._command_line import Parser
from braid.torch.environment import last_words, logs
from braid.torch.environment.codec_check import check_codec
from braid.torch.environment.variables import WrongVariable, check_switches

_NO_RANKS = """\
braid-run: nobody has set RANK and WORLD_SIZE, so the script does not know which rank it is. Start it with
  braid-run --nproc-per-node 2 SCRIPT        on this machine, or with
  torchrun ... --no-python braid-run SCRIPT  on several nodes."""
_EPILOG = """\
  braid-run --nproc-per-node 8 train.py --epochs 3       8 ranks on this machine, through torchrun

Without --nproc-per-node it starts no ranks: the script runs in this process, so braid-run goes where `python` stood:

  torchrun --nproc-per-node 8 --no-python braid-run train.py --epochs 3     torchrun's other options, several nodes
  srun braid-run train.py --epochs 3         RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT are set

The daemon's socket is $BRAID_SOCKET (default /run/braid/braidd.sock). Where no daemon answers, one is started for
this run: on each node, for this user alone. BRAID_PERSONAL=0 prevents that.
"""


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if importlib.util.find_spec("torch") is None:
        sys.exit(
            f"braid-run: {sys.executable} has no torch: install torch 2.7 or later for it, or install "
            "braid into the environment that has torch"
        )
    if not options.module and not os.path.exists(options.script):
        print(f"braid-run: there is no script '{options.script}'", file=sys.stderr)
        sys.exit(2)
    _check_variables()
    if options.nproc_per_node is not None:
        _start_ranks(options)
    # Children that the script starts, and `import torch` itself, read this.
    os.environ["BRAID_ENABLE"] = "1"
    if options.keep_buckets:
        os.environ["BRAID_KEEP_BUCKETS"] = "1"
    # Before our own modules: torch's backend hook imports them at the end of `import torch`, which
    # they begin with; the other way round it would find them half made.
    import torch  # noqa: F401

    from braid.torch import require_torch

    from braid.torch.attach.substitution import enable

    try:
        require_torch()
        enable()
    except RuntimeError as error:
        last_words.end(f"braid-run: {error}")
    try:
        _run_script(options)
    except ValueError as error:
        if "environment variable" in str(error) and "expected" in str(error):
            sys.exit(_NO_RANKS)
        raise


def _check_variables() -> None:
    """Before ranks are started, each of which would say the same."""
    try:
        check_switches()
        check_codec()
        logs.set_up()
    except WrongVariable as error:
        last_words.end(f"braid-run: {error}")


def _run_script(options: argparse.Namespace) -> None:
    sys.argv = [options.script, *options.arguments]
    if options.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.realpath(options.script)))
        runpy.run_path(options.script, run_name="__main__")


def _start_ranks(options: argparse.Namespace) -> NoReturn:
    """Becomes torchrun, which starts this program again, once for each rank."""
    own = [name for name in ("module", "keep_buckets") if getattr(options, name)]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", options.nproc_per_node, "--no-python"]
    command += [sys.executable, "-m", "braid.torch.launcher"]
    command += ["--" + name.replace("_", "-") for name in own]
    os.execv(sys.executable, [*command, options.script, *options.arguments])


def _parser() -> Parser:
    parser = Parser(
        prog="braid-run",
        description="Runs a PyTorch script with braid in place of gloo, NCCL or MPI.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"braid-run {__version__}")
    parser.add_argument(
        "--nproc-per-node",
        metavar="N",
        help="start so many ranks on this machine (a number, gpu, cpu or auto, as torchrun has it)",
    )
    parser.add_argument(
        "-m", "--module", action="store_true", help="SCRIPT is a module, as in python -m"
    )
    parser.add_argument(
        "--keep-buckets",
        action="store_true",
        help="reduce the buckets of DistributedDataParallel as they are, instead of handing the "
        "daemon gradients to plan (the same as BRAID_KEEP_BUCKETS=1)",
    )
    parser.add_argument("script", metavar="SCRIPT", help="the file (or module) to run")
    parser.add_argument(
        "arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="passed to the script"
    )
    return parser


if __name__ == "__main__":
    main()
