# SPDX-License-Identifier: Apache-2.0
"""Runs torchrun, or one rank, on a node that has no daemon: `personal_node.py RANKS SCRIPT ARGUMENT...`.

torchrun as an unprivileged user if it can: nobody, who may still read what root has installed. At the end it
waits until nothing is left of what was started, and says so. RANKS 0: SCRIPT is run as a rank, as it was started.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NOBODY = 65534
PATIENCE_S = 90
# The launcher's own, which torchrun sets anew, and where a daemon would be.
NOT_PASSED_ON = ("BRAID_SOCKET", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK")


def as_nobody(folder: str) -> list[str]:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return []
    os.chown(folder, NOBODY, NOBODY)
    may_read = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *may_read]


def main() -> None:
    ranks, *command = sys.argv[1:]
    environment = dict(os.environ)
    node = environment["RANK"]
    with tempfile.TemporaryDirectory(prefix="braid-node-") as folder:
        environment |= {"XDG_RUNTIME_DIR": folder, "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        argv = [sys.executable]
        if int(ranks):
            argv = [*as_nobody(folder), *argv]
            for name in NOT_PASSED_ON:
                environment.pop(name, None)
            argv += ["-m", "torch.distributed.run", "--nnodes", os.environ["WORLD_SIZE"], "--node-rank", node]
            argv += ["--nproc-per-node", ranks, "--master-addr", environment["MASTER_ADDR"]]
            argv += ["--master-port", environment["MASTER_PORT"]]
        elif node in environment.get("BRAID_TEST_LACKING", "").split(","):
            environment.pop("BRAID_SOCKET")
        code = subprocess.run([*argv, *command], env=environment, check=False).returncode
        end = time.monotonic() + PATIENCE_S
        while (left := os.listdir(folder)) and time.monotonic() < end:
            time.sleep(0.1)
        paths = [str(path) for path in Path(folder).rglob("*")]
        print(f"LEFT on node {node}: {paths if left else 'nothing'}", flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
