# SPDX-License-Identifier: Apache-2.0
"""A process that outlives the tool: when the tool dies without a word, it takes the cluster down.

It waits on a pipe whose other end only the tool holds. The tool writes a byte when it has cleaned
up itself; an end of file without that byte means that it was killed.
"""

import os
import signal
import subprocess
import sys

_DONE = b"."


class Reaper:
    """The tool's side. Start it before anything that would need cleaning up."""

    def __init__(self, cluster_id: str):
        scripts = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cluster_lib.reaper", cluster_id],
            cwd=scripts,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Everything is clean. The reaper ends at once."""
        try:
            self._process.communicate(_DONE, timeout=10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


def _main(cluster_id: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == _DONE:
        return
    from .cleanup import remove  # after the wait: most runs never need it

    left = remove(cluster_id)
    print(
        f"cluster: the tool of cluster {cluster_id} was killed; its remains were removed"
        + (f", except {', '.join(left)}" if left else ""),
        file=sys.stderr,
    )


if __name__ == "__main__":
    _main(sys.argv[1])
