# SPDX-License-Identifier: Apache-2.0
"""braid-gpu-probe, which asks the CUDA driver, against the driver without a GPU."""

import bench_tools  # noqa: F401 (makes `measure` importable)
import pytest
from braid_build import BUILD, IS_SANITIZED, PATIENCE_S, ran
from measure.errors import Deadline, SystemFailed
from measure.gpu import probe
from trainer_process import until

PROBE = BUILD / "bin" / probe.NAME
DRIVER = BUILD / "lib" / "fake_cuda"

pytestmark = pytest.mark.skipif(
    IS_SANITIZED or not PROBE.exists() or not (DRIVER / "libcuda.so.1").exists(),
    reason=f"{PROBE} and the driver without a GPU are not built, or with a sanitizer",
)


def rows_of(*only: str, **settings: str) -> dict[str, list[dict]]:
    """By test; `settings` are the driver's."""
    variables = {"LD_LIBRARY_PATH": str(DRIVER), **{f"FAKE_CUDA_{name}": value for name, value in settings.items()}}
    found: dict[str, list[dict]] = {}
    for row in probe.rows(str(PROBE), ["--only", ",".join(only)], variables, Deadline(PATIENCE_S)):
        found.setdefault(row["test"], []).append(row)
    return found


def test_a_driver_is_asked_what_it_can_do():
    found = rows_of("device", "words", "export")
    (device,) = found["probe device"]
    assert device["name"] == "Fake GPU" and device["stream_memory_operations"] == 1 and device["driver_api"] > 11070
    (words,) = found["probe words"]
    assert 0 < words["write_us"] and 0 < words["host_store_to_gpu_to_host_us"]
    (calls,) = found["probe calls"]
    assert {"write_value_us", "wait_value_us", "event_record_and_wait_us"} < set(calls)
    # What this driver lacks is a row, and no end.
    (refused,) = found["probe refused"]
    assert refused["probe"] == "export" and "cuMem" in refused["error"]


def test_copies_have_the_rate_that_the_driver_gives_them():
    found = rows_of("copy", COPY_GB_S="8")
    large = [row for row in found["probe copy"] if row["bytes"] >= 1 << 20]
    assert [row["bytes"] >> 20 for row in large] == [1, 4, 16, 64]
    for row in large:
        assert 0 < row["d2h_gb_s"] < 8.4 and 0 < row["h2d_gb_s"] < 8.4 and 0 < row["both_gb_s"] < 16.8


def test_one_queue_for_all_streams_stops_copies_behind_a_stream_that_waits():
    found = rows_of("blocked-streams", QUEUES="1")["probe blocked-streams"]
    assert [row["blocked"] for row in found] == [1, 4, 8, 16, 32, 48, 64, 128]
    for row in found:
        times = [value for name, value in row.items() if name.endswith("_ms")]
        assert times == [None] * 6 and row["stood_still_in"] is None


def is_held_up(row: dict) -> bool:
    return row["holder_waits"] and not row["memcpy_d2h"] and not row["write_value"] and not row["word_came"]


def test_frees_that_lock_hold_up_every_call_until_the_host_stores():
    seen: set[str] = set()

    def all_seen() -> bool:
        """On a busy machine a thread may come late, and find the others gone."""
        rows = rows_of("holder", FREE="locks")["probe holder"]
        assert all(row["all_go_on_after_host_store"] for row in rows)
        assert not is_held_up(next(row for row in rows if row["holder"] == "nothing"))
        seen.update(row["holder"] for row in rows if is_held_up(row))
        return seen == {"cuMemFree", "cuMemAlloc", "cuCtxSynchronize", "cuMemHostUnregister"}

    until(all_seen, "a call of each kind that holds up the others")


def test_a_queue_is_as_deep_as_the_driver_makes_it():
    (row,) = rows_of("queue-depth", DEPTH="64")["probe queue-depth"]
    assert 0 < row["calls_until_the_caller_waits"] <= 64


def test_a_machine_without_a_driver_is_told():
    with pytest.raises(SystemFailed, match="libcuda.so.1"):
        list(probe.rows(str(PROBE), [], {}, Deadline(PATIENCE_S)))


def test_a_probe_that_does_not_exist_is_named():
    done = ran([PROBE, "--only", "everything"])
    assert done.returncode != 0 and "everything" in done.stderr + done.stdout


def test_a_probe_that_does_not_end_is_ended():
    with pytest.raises(SystemFailed, match="no end within 0.2 s"):
        list(probe.rows("/bin/sleep", ["600"], {}, Deadline(0.2)))


def test_what_is_no_row_is_told():
    with pytest.raises(SystemFailed, match="no row: 17"):
        list(probe.rows("/bin/echo", ["17"], {}, Deadline(PATIENCE_S)))
