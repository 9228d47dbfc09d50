# SPDX-License-Identifier: Apache-2.0
"""Running ip(8) and tc(8)."""

import subprocess

from .errors import ClusterError

COMMAND_TIMEOUT_S = 30


def run(argv: list[str], *, script: str | None = None, may_fail: bool = False) -> str:
    """Runs a short command, returns its output; raises ClusterError with its first complaint.

    The command has a session of its own, so that Ctrl-C reaches the tool only, which then takes
    everything down in order.
    """
    try:
        done = subprocess.run(
            argv,
            input=script,
            stdin=subprocess.DEVNULL if script is None else None,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            start_new_session=True,
            check=False,
        )
    except FileNotFoundError:
        raise ClusterError(f"{argv[0]} is not installed: it comes with iproute2") from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{' '.join(argv)}: no end within {COMMAND_TIMEOUT_S} s") from None
    if done.returncode != 0 and not may_fail:
        complaint = done.stderr.strip().splitlines() or ["no message"]
        raise ClusterError(f"{' '.join(argv)}: {complaint[0]}")
    return done.stdout
