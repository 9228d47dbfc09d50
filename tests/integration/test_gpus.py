# SPDX-License-Identifier: Apache-2.0
"""A daemon that knows its GPUs: made-up ones, whose clocks, errors and processes each test sets."""

import json
import pathlib
import re
import time
import urllib.request
from collections.abc import Iterator

import pytest
from braid_build import BRAIDCTL, IS_SANITIZED, PATIENCE_S, braidctl, ran
from browser import Browser, needs_browser
from fake_gpus import HEAT, FakeGpus, needs_fake_nvml
from real_cluster import SUM_FOREVER, end_running, until, wait_until_running
from second_user import GROUP_SETTING, NOBODY, needs_nobody, way_opened
from single_daemon import SingleDaemon, free_port
from test_explain import SMALL, TRAIN

pytestmark = [needs_fake_nvml, pytest.mark.sanitized]

OFTEN = "gpu.watch_seconds=1"


@pytest.fixture
def gpus(tmp_path: pathlib.Path) -> FakeGpus:
    return FakeGpus(tmp_path, 2)


def status(daemon: SingleDaemon) -> dict:
    done = braidctl(daemon.socket, "status", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def told(daemon: SingleDaemon) -> list[dict]:
    """The GPUs, as soon as they have been read."""
    until(lambda: status(daemon)["gpus"], "GPUs are known")
    return status(daemon)["gpus"]


def two_readings(daemon: SingleDaemon) -> None:
    """Until a reading has begun and ended: one that was under way before may have seen half of what was set."""
    for _ in range(2):
        before = status(daemon)["gpus"][0]["read_at"]
        until(lambda before=before: status(daemon)["gpus"][0]["read_at"] > before, "the GPUs are read again")


class Metrics:
    def __init__(self):
        self.port = free_port()

    @property
    def setting(self) -> str:
        return f"metrics.port={self.port}"

    def read(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=PATIENCE_S) as page:
            lines = page.read().decode().splitlines()
        parts = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {series: float(value) for series, _, value in parts}


def test_gpus_are_told_with_their_numbers(gpus):
    gpus.set(1, name="NVIDIA H100", clock=1140, temperature=91, pcie_width=8)
    metrics = Metrics()
    with SingleDaemon(OFTEN, metrics.setting, environment=gpus.environment) as daemon:
        first, second = told(daemon)
        assert first["name"] == "NVIDIA Fake 80GB" and second["name"] == "NVIDIA H100"
        assert second["pci"] == "0000:18:00.0" and second["clock_mhz"] == 1140 and second["pcie_width"] == 8
        series = metrics.read()
        assert series['braid_gpu_clock_hertz{gpu="1"}'] == 1.14e9
        assert series['braid_gpu_temperature_celsius{gpu="1"}'] == 91
        assert series['braid_gpu_slowed{gpu="1",reason="heat"}'] == 0
        assert series['braid_gpu_up{gpu="0"}'] == 1
        gpus.set(1, reasons=HEAT, xid="79", ecc_uncorrected=1)
        two_readings(daemon)
        second = status(daemon)["gpus"][1]
        assert [reason["name"] for reason in second["reasons"]] == ["heat"]
        assert second["reasons"][0]["since"] == pytest.approx(time.time(), abs=PATIENCE_S)
        assert second["xid_errors"] == 1 and second["last_xid"] == 79 and second["ecc_uncorrected_at"] > 0
        series = metrics.read()
        assert series['braid_gpu_slowed{gpu="1",reason="heat"}'] == 1
        assert series['braid_gpu_xid_errors_total{gpu="1"}'] == 1
        assert series['braid_gpu_ecc_errors_total{gpu="1",kind="uncorrected"}'] == 1
        for line in ("GPU 1 (GPU-fake-1) reports Xid 79: the GPU has fallen off the bus", "1140 of 1980 MHz, 91 °C"):
            until(lambda line=line: line in daemon.said(), "it is logged")
        assert daemon.stop() == 0


@pytest.mark.parametrize("reason", ["no library", "switched off"])
def test_without_gpus_nothing_is_said_of_them(gpus, reason):
    metrics = Metrics()
    settings = [metrics.setting] if reason == "no library" else [metrics.setting, "gpu.watch_seconds=0"]
    environment = {} if reason == "no library" else gpus.environment
    with SingleDaemon(*settings, environment=environment) as daemon:
        assert status(daemon)["gpus"] == [] and status(daemon)["gpus_silent_seconds"] == 0
        assert not [series for series in metrics.read() if "gpu" in series]
        assert "GPU" not in braidctl(daemon.socket, "status").stdout
        assert daemon.stop() == 0
        assert "GPU" not in daemon.said() and "NVIDIA" not in daemon.said()


def test_a_driver_that_is_loaded_later_is_said_once(gpus):
    gpus.say("fail nvmlInit_v2 9")
    with SingleDaemon(OFTEN, environment=gpus.environment) as daemon:
        line = "no GPUs are watched: NVIDIA's library does not begin: Driver Not Loaded"
        until(lambda: line in daemon.said(), "it is said")
        assert status(daemon)["gpus"] == []
        assert daemon.stop() == 0
        assert daemon.said().count(line) == 1


def test_a_rank_is_found_on_its_gpu(gpus):
    metrics = Metrics()
    with SingleDaemon(OFTEN, metrics.setting, environment=gpus.environment) as daemon:
        trainers = daemon.start(SUM_FOREVER, world=2, job="train")
        wait_until_running(trainers)
        gpus.set(0, processes=f"{trainers[1].pid}:1048576 1")
        gpus.set(1, processes=f"{trainers[0].pid}")
        told(daemon)
        two_readings(daemon)
        first, second = status(daemon)["gpus"]
        assert first["processes"] == [{"pid": trainers[1].pid, "memory_bytes": 1048576, "job": "train", "rank": 1}]
        assert first["other_processes"] == 1 and second["other_processes"] == 0
        assert second["processes"][0]["rank"] == 0
        series = metrics.read()
        assert series['braid_job_rank_gpu{training_job="train",rank="0",gpu="1"}'] == 1
        assert series['braid_job_rank_gpu{training_job="train",rank="1",gpu="0"}'] == 1
        assert series['braid_gpu_processes{gpu="0"}'] == 2
        end_running(trainers)


@pytest.mark.skipif(IS_SANITIZED, reason="what bounds the steps would be the sanitizer")
def test_explain_names_the_heat_of_a_late_ranks_gpu(gpus):
    late = {"counts": SMALL, "before": 0.02, "backward": [0.05, 0.15]}
    with SingleDaemon(OFTEN, "tune.mode=off", environment=gpus.environment) as daemon:
        trainers = daemon.start(TRAIN, world=2, job="train", argument=late)
        wait_until_running(trainers)
        for rank, trainer in enumerate(trainers):
            gpus.set(rank, processes=str(trainer.pid))
        gpus.set(1, clock=1140, reasons=HEAT, temperature=91)
        told(daemon)
        two_readings(daemon)
        done = braidctl(daemon.socket, "explain", "--job", "train", "--seconds", "0.5", "--json")
        assert done.returncode == 0, done.stderr
        findings = {finding["cause"]: finding for finding in json.loads(done.stdout)["findings"]}
        assert list(findings)[:2] == ["gpu_heat", "late_rank"], done.stdout
        assert findings["gpu_heat"]["rank"] == 1 and findings["gpu_heat"]["node"] == "alone"
        sentence = r"Rank 1's GPU \(1 of alone\) is slowed down by heat: 1,140 of 1,980 MHz since \d+:\d+ UTC, at 91 °C"
        assert re.fullmatch(sentence, findings["gpu_heat"]["text"])
        assert findings["gpu_heat"]["seconds_per_step"] == findings["late_rank"]["seconds_per_step"]
        seen = braidctl(daemon.socket, "status").stdout
        assert re.search(r"^1 +NVIDIA Fake 80GB +1140 of 1980 MHz +heat +91 .* train 1$", seen, re.M), seen
        assert "GPU 1: its clock is low since" in seen
        end_running(trainers)


@needs_browser
@pytest.mark.skipif(IS_SANITIZED, reason="of the daemon it sees what the tests above see")
def test_the_page_shows_gpus_where_there_are_some(gpus):
    gpus.set(1, clock=1140, reasons=HEAT, temperature=91, ecc_uncorrected=1, pcie_width=8)
    with_gpus, without = Metrics(), Metrics()
    rows = "[...document.querySelectorAll('#gpus tbody tr')].map((row) => row.textContent)"
    with SingleDaemon(OFTEN, with_gpus.setting, environment=gpus.environment), Browser() as browser:
        browser.open(f"http://127.0.0.1:{with_gpus.port}/")
        browser.until(f"{rows}.length === 2")
        first, second = browser.run(rows)
        assert "1,980 MHz" in first and "none" in first
        assert "1,140 MHz" in second and "91 °C" in second and "slowed by heat since" in second
        assert "1 uncorrectable memory error; 8 of 16 PCIe lanes" in second
        # All of it is to be seen without scrolling sideways.
        assert browser.run("(table => table.scrollWidth <= table.clientWidth)(document.querySelector('#gpus .wide'))")
    with SingleDaemon(without.setting), Browser() as browser:
        browser.open(f"http://127.0.0.1:{without.port}/")
        browser.until("document.querySelectorAll('#rails tbody tr').length === 1")
        assert browser.run("document.getElementById('gpus-section').hidden")


@needs_nobody
def test_a_user_sees_only_his_own_processes_on_gpus(gpus):
    with SingleDaemon(OFTEN, GROUP_SETTING, environment=gpus.environment) as daemon, way_opened(daemon.socket):
        trainers = daemon.start(SUM_FOREVER, job="secret")
        wait_until_running(trainers)
        gpus.set(0, processes=str(trainers[0].pid), clock=1000)
        told(daemon)
        two_readings(daemon)
        seen = ran([*NOBODY, BRAIDCTL, "--socket", daemon.socket, "status", "--json"], cwd="/")
        assert seen.returncode == 0, seen.stderr
        gpu = json.loads(seen.stdout)["gpus"][0]
        assert gpu["processes"] == [] and gpu["other_processes"] == 1
        assert gpu["clock_mhz"] == 1000, "a GPU's own numbers are no secret"
        assert "secret" not in seen.stdout and f'"pid":{trainers[0].pid}' not in seen.stdout
        end_running(trainers)


def test_a_gpu_that_falls_off_the_bus_is_said_and_the_others_are_read(gpus):
    metrics = Metrics()
    with SingleDaemon(OFTEN, metrics.setting, environment=gpus.environment) as daemon:
        told(daemon)
        gpus.set(0, lost=15, xid="79")
        gpus.set(1, clock=1200)
        two_readings(daemon)
        assert status(daemon)["gpus"][1]["clock_mhz"] == 1200, "the other one is read"
        lost = status(daemon)["gpus"][0]
        assert lost["error"] == "GPU is lost" and lost["uuid"] == "GPU-fake-0" and lost["last_xid"] == 79
        series = metrics.read()
        assert series['braid_gpu_up{gpu="0"}'] == 0 and series['braid_gpu_up{gpu="1"}'] == 1
        assert 'braid_gpu_clock_hertz{gpu="0"}' not in series
        line = "GPU 0 (GPU-fake-0) does not answer: GPU is lost"
        until(lambda: line in daemon.said(), "it is logged")
        gpus.set(0, lost=None)
        until(lambda: status(daemon)["gpus"][0]["error"] == "", "it is read again")
        assert daemon.stop() == 0


@pytest.fixture
def hanging(gpus) -> Iterator[FakeGpus]:
    yield gpus
    gpus.say()


def test_a_library_that_hangs_holds_nobody_up(hanging):
    metrics = Metrics()
    with SingleDaemon(OFTEN, metrics.setting, environment=hanging.environment) as daemon:
        told(daemon)
        hanging.say("hang 1")
        trainers = daemon.start(SUM_FOREVER, world=2)
        wait_until_running(trainers)
        until(lambda: status(daemon)["gpus_silent_seconds"] > 0, "the silence is told")
        assert len(status(daemon)["gpus"]) == 2, "what was read last"
        assert metrics.read()["braid_gpu_silent_seconds"] >= 10
        end_running(trainers)
        assert daemon.stop() == 0, "nor its end"
        assert "NVIDIA's library does not answer: its thread is left behind" in daemon.said()
