# SPDX-License-Identifier: Apache-2.0
"""One real braidd on the loopback device, for what a daemon says to its surroundings by itself."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading

from braid_build import BRAIDD, PATIENCE_S, braidctl, python, trainer_environment
from real_cluster import TRAINER, Trainer, until

# The variables of a service manager are a test's own to set.
_OF_A_SERVICE = ("JOURNAL_STREAM", "NOTIFY_SOCKET", "WATCHDOG_USEC", "STATE_DIRECTORY")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class SingleDaemon:
    """`with SingleDaemon("log.format=json") as daemon: …`; what it says is kept (stdout: unless `out` is given)."""

    def __init__(self, *settings: str, environment: dict[str, str] | None = None,
                 prefix: list[str] | None = None, journal_is_stderr: bool = False, out=None):  # fmt: skip
        self._folder = tempfile.TemporaryDirectory(prefix="braid-")
        self.name, self.namespace = "alone", None
        self.socket = f"{self._folder.name}/s"
        self._settings = settings
        reading, writing = os.pipe()
        self._environment = {k: v for k, v in os.environ.items() if k not in _OF_A_SERVICE}
        self._environment |= environment or {}
        if journal_is_stderr:
            stat = os.fstat(writing)
            self._environment["JOURNAL_STREAM"] = f"{stat.st_dev}:{stat.st_ino}"
        self._said: list[bytes] = []
        self.trainers: list[Trainer] = []
        port = free_port()
        argv = [*(prefix or []), BRAIDD, "--config", "/dev/null"]
        for setting in (
            "node.name=alone", "node.address=127.0.0.1", "transport.rails=lo", f"control.port={port}",
            f"client.socket={self.socket}", "client.group=", "metrics.port=0", "transport.flows_per_link=1", *settings,
        ):  # fmt: skip
            argv += ["--set", setting]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out or writing, stderr=writing, env=self._environment
        )
        os.close(writing)
        self._reader = threading.Thread(target=self._read, args=(reading,))
        self._reader.start()

    def _read(self, reading: int) -> None:
        while part := os.read(reading, 1 << 16):
            self._said.append(part)
        os.close(reading)

    def said(self) -> str:
        return b"".join(self._said).decode(errors="replace")

    def lines(self) -> list[bytes]:
        return b"".join(self._said).splitlines()

    def serves(self) -> bool:
        assert self.process.poll() is None, self.said()
        return braidctl(self.socket, "status").returncode == 0

    def enter(self, argv: list[str]) -> list[str]:
        return argv

    def start(self, source: str, world: int = 1, job: str = "train", argument=None) -> list[Trainer]:
        started = []
        for rank in range(world):
            environment = {
                **os.environ, **trainer_environment(), "WORLD_SIZE": str(world), "RANK": str(rank),
                "MASTER_ADDR": "127.0.0.1", "BRAID_SOCKET": self.socket,
            }  # fmt: skip
            environment = {os.fsencode(k): os.fsencode(v) for k, v in environment.items()}
            environment[b"BRAID_JOB"] = os.fsencode(job)
            argv = [*python(), TRAINER, source, json.dumps(argument)]
            started.append(Trainer(self, rank, argv, environment))
        self.trainers += started
        return started

    def stop(self) -> int:
        """With SIGTERM; how it ended."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def __enter__(self) -> "SingleDaemon":
        try:
            until(self.serves, "braidd serves")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for trainer in self.trainers:
            if trainer.process.poll() is None:
                trainer.kill()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        self._folder.cleanup()


class DatagramSocket:
    """A socket of the test's own in place of a service manager's; what comes is kept."""

    def __init__(self, path: pathlib.Path | str):
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._socket.settimeout(0.1)
        self.received: list[bytes] = []
        self._is_over = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while not self._is_over:
            try:
                self.received.append(self._socket.recv(1 << 16))
            except TimeoutError:
                continue

    def __enter__(self) -> "DatagramSocket":
        return self

    def __exit__(self, *_) -> None:
        self._is_over = True
        self._reader.join()
        self._socket.close()
