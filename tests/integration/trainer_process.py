# SPDX-License-Identifier: Apache-2.0
"""One rank that runs lines of trainer.py's language, and waiting for what it says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time

from braid_build import PATIENCE_S


def until(condition, what: str, seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


class Trainer:
    """One rank that runs lines of trainer.py's language on a node, a cluster's or a SingleDaemon."""

    of_this_test: list[Trainer] = []

    def __init__(self, node, rank: int, argv: list[str], environment: dict[str, str]):
        self.node, self.rank = node, rank
        self._killed_by_test = False
        Trainer.of_this_test.append(self)
        self._out = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            node.enter(argv),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=subprocess.STDOUT,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def output(self) -> str:
        # pread: the position of the file is shared with the process that writes it.
        size = os.fstat(self._out.fileno()).st_size
        return os.pread(self._out.fileno(), size, 0).decode(errors="replace")

    def wait_for(self, text: str) -> None:
        until(lambda: text in self.output() or self.process.poll() is not None, f"'{text}'")
        assert text in self.output(), f"rank {self.rank} ended early:\n{self.output()}"

    def results(self) -> list[dict]:
        """What it has reported; call it when the trainer has ended, or said what you wait for."""
        return [json.loads(line) for line in re.findall(r"^RESULT (.*)$", self.output(), re.M)]

    def end(self) -> int:
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"rank {self.rank} hangs:\n{self.output()}") from None

    def result(self) -> dict:
        """The report of a trainer that ended well."""
        assert self.end() == 0, f"rank {self.rank}:\n{self.output()}"
        return self.results()[-1]

    def error(self) -> dict:
        """The braid error that ended it: `error`, `text`, `at`."""
        assert self.end() == 3, f"rank {self.rank} did not end with an error:\n{self.output()}"
        return self.results()[-1]

    def kill(self) -> None:
        self._killed_by_test = self._killed_by_test or self.process.poll() is None
        self.process.kill()
        self.process.wait()

    def ending(self) -> str:
        code = self.process.poll()
        if code is None or self._killed_by_test:
            return "still runs" if code is None else "ran until the test killed it"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def told_of_trainers() -> str:
    """How each trainer of the test ended, with its last line; then all that they said."""
    endings, outputs = [], []
    for one in Trainer.of_this_test:
        output = one.output().strip()
        title = f"rank {one.rank} on {one.node.name}, process {one.pid}"
        endings.append(f"{title}: {one.ending()}; last: {output.rpartition(chr(10))[2][:200]}")
        outputs.append(f"{title} said:\n{output[-4000:]}")
    return "\n".join([*endings, "", *outputs])
