# SPDX-License-Identifier: Apache-2.0
"""What can end a run of the tool early, and the exit codes that say so."""

import signal

EXIT_TIMEOUT = 124  # as timeout(1)
EXIT_TOOL_FAILED = 125  # the tool itself failed, COMMAND is not to blame
EXIT_DAEMON_CRASHED = 70  # COMMAND succeeded on every rank, but a daemon crashed


class ClusterError(Exception):
    """The tool cannot go on; the text names what is wrong and what would be right."""


class NotPermitted(ClusterError):
    """This process may not make network namespaces."""


class Interrupted(Exception):
    """A signal asked the tool to stop."""

    def __init__(self, signal_number: int):
        super().__init__(signal.Signals(signal_number).name)
        self.exit_code = 128 + signal_number


class TimedOut(Exception):
    """COMMAND did not end within --timeout."""


class OutputClosed(Exception):
    """The reader of the tool's output has left."""
