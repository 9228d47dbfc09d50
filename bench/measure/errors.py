# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, by how far it reaches; and the clock that every wait looks at."""

import time

EXIT_FAILED = 1  # a system or more has no complete row, or the cluster failed
EXIT_USAGE = 2  # bad arguments, or something is not installed: nothing was started


class RunFailed(Exception):
    """The whole run cannot go on."""


class SystemFailed(Exception):
    """One system cannot go on; the text has what it said. The others are not touched."""


class Deadline:
    def __init__(self, seconds: float):
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def is_over(self) -> bool:
        return self.left() == 0.0
