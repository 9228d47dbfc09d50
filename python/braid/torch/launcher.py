# SPDX-License-Identifier: Apache-2.0
"""braid-run: runs a training script as it is, with braid under torch.distributed."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

_EPILOG = """\
Each rank runs in the process that started braid-run, so it goes where `python` stood:

  braid-run train.py --epochs 3              RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT are set
  torchrun --nproc-per-node 8 --no-python braid-run train.py --epochs 3

The daemon's socket is $BRAID_SOCKET (default /run/braid/braidd.sock).
"""


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    # Children that the script starts, and `import torch` itself, read this.
    os.environ["BRAID_ENABLE"] = "1"
    if options.keep_buckets:
        os.environ["BRAID_KEEP_BUCKETS"] = "1"
    # Before our own modules: torch's backend hook imports them at the end of `import torch`, which
    # they begin with; the other way round it would find them half made.
    import torch  # noqa: F401

    from braid.torch.substitution import enable

    enable()
    if options.module:
        sys.argv = [options.script, *options.arguments]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [options.script, *options.arguments]
        sys.path.insert(0, os.path.dirname(os.path.realpath(options.script)))
        runpy.run_path(options.script, run_name="__main__")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="braid-run",
        description="Runs a PyTorch script with braid in place of gloo, NCCL or MPI.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-m", "--module", action="store_true", help="SCRIPT is a module, as in python -m"
    )
    parser.add_argument(
        "--keep-buckets",
        action="store_true",
        help="reduce the buckets of DistributedDataParallel as they are, instead of handing the "
        "daemon every parameter on its own (the same as BRAID_KEEP_BUCKETS=1)",
    )
    parser.add_argument("script", metavar="SCRIPT", help="the file (or module) to run")
    parser.add_argument(
        "arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="passed to the script"
    )
    return parser


if __name__ == "__main__":
    main()
