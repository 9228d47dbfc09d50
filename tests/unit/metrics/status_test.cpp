// SPDX-License-Identifier: Apache-2.0
#include "metrics/status.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

DaemonStatus sample() {
  DaemonStatus status;
  status.version = "0.1.0";
  status.node = {"node-a", "00000000000000ff", "192.0.2.1"};
  status.uptime_seconds = 12.5;
  status.polling = {"adaptive", 0.25};
  status.processor = {7.5, 0.5};
  status.transport = "UCX 1.13.1, tcp on eth0";
  status.rails = {"eth0"};
  status.rails_down = {"eth0"};
  GpuFacts gpu;
  gpu.index = 1;
  gpu.uuid = "GPU-1";
  gpu.near_rails = {"eth0"};
  gpu.clock_mhz = 1140;
  gpu.reasons = {{"heat", 1'700'000'000}};
  gpu.processes = {{4711, 1024, "train", 0}};
  status.gpus = {gpu};
  status.gpus_silent_seconds = 12.5;
  status.flows = {
      {"node-b", "out", 0, 1, "eth0", "open", 100, 7, 2, "silent", 0.5, 0.25, 0.125, 7}};
  status.jobs = {{"train",
                  3,
                  "running",
                  4,
                  2,
                  {{"node-a", "192.0.2.1", {0, 1}, "r7"}},
                  {{0, 4711, 1000, 64}},
                  10,
                  5,
                  1,
                  UINT64_MAX,
                  64,
                  4096,
                  1000,
                  5,
                  2.5,
                  0.75,
                  {{0, "inverses", 9, 0.5, 0.25, 0.125, 0.375, 0.75, 0.625}},
                  {true, 1.5, 7},
                  {false, 0.5, 8}}};
  status.jobs_hidden = 3;
  status.peers = {{"node-b", "192.0.2.2", 7410}};
  status.counters = {{"chunks_sent", 42}};
  return status;
}

TEST(DaemonStatus, HasTheDocumentedShape) {
  const auto json = nlohmann::json::parse(to_json(sample()));
  EXPECT_EQ(json, nlohmann::json::parse(R"({
    "version": "0.1.0",
    "node": {"name": "node-a", "id": "00000000000000ff", "address": "192.0.2.1"},
    "uptime_seconds": 12.5,
    "polling": {"mode": "adaptive", "seconds": 0.25},
    "processor": {"seconds": 7.5, "wait_seconds": 0.5},
    "transport": "UCX 1.13.1, tcp on eth0",
    "rails": ["eth0"],
    "rails_down": ["eth0"],
    "gpus": [{"index": 1, "name": "", "uuid": "GPU-1", "pci": "", "numa_node": -1,
              "near_rails": ["eth0"], "read_at": 0, "error": "", "clock_mhz": 1140, "clock_max_mhz": 0,
              "reasons": [{"name": "heat", "since": 1700000000}], "temperature_celsius": -1,
              "power_watts": 0.0, "power_limit_watts": 0.0, "utilization": -1.0,
              "memory_used_bytes": 0, "memory_bytes": 0, "ecc_corrected": -1,
              "ecc_uncorrected": -1, "ecc_uncorrected_at": 0, "xid_errors": 0, "last_xid": 0,
              "last_xid_at": 0, "pcie_generation": 0, "pcie_generation_max": 0, "pcie_width": 0,
              "pcie_width_max": 0, "pcie_replays": -1,
              "processes": [{"pid": 4711, "memory_bytes": 1024, "job": "train", "rank": 0}],
              "other_processes": 0}],
    "gpus_silent_seconds": 12.5,
    "flows": [{"peer": "node-b", "direction": "out", "io_loop": 0, "flow": 1, "rail": "eth0",
               "state": "open", "bytes_sent": 100, "bytes_received": 7, "failures": 2,
               "error": "silent", "round_trip_ms": 0.5, "bytes_per_second": 0.25,
               "path_round_trip_ms": 0.125, "segments_resent": 7}],
    "jobs": [{"name": "train", "epoch": 3, "state": "running", "world_size": 4, "weight": 2,
              "nodes": [{"name": "node-a", "address": "192.0.2.1", "ranks": [0, 1], "rack": "r7"}],
              "local_ranks": [{"rank": 0, "pid": 4711, "uid": 1000,
                               "arena_memory_bytes": 64}],
              "operations_done": 10, "steps_done": 5, "operations_pending": 1,
              "bytes": 18446744073709551615, "arena_memory_bytes": 64,
              "result_memory_bytes": 4096, "result_memory_used_bytes": 1000,
              "planned_steps": 5, "step_seconds": 2.5, "exposed_seconds": 0.75,
              "work": [{"rank": 0, "work": "inverses", "updates": 9, "interval_seconds": 0.5,
                        "seconds": 0.25, "wait_seconds": 0.125, "planned_seconds": 0.375,
                        "makespan_seconds": 0.75, "bound_seconds": 0.625}],
              "polling": {"pays": true, "gain": 1.5, "duels": 7},
              "few_flows": {"pays": false, "gain": 0.5, "duels": 8}}],
    "jobs_hidden": 3,
    "peers": [{"name": "node-b", "address": "192.0.2.2", "port": 7410}],
    "counters": {"chunks_sent": 42}})"));
}

TEST(DaemonStatus, IsReadBack) {
  const std::string json = to_json(sample());
  EXPECT_EQ(to_json(parse_status(json).value()), json);
  EXPECT_EQ(to_json(parse_status(to_json({})).value()), to_json({}));
}

TEST(DaemonStatus, NamesThatAreNoUtf8DoNotFailIt) {
  DaemonStatus status;
  status.jobs.resize(1);
  status.jobs[0].name = "caf\xe9";
  EXPECT_TRUE(parse_status(to_json(status)).is_ok());
}

TEST(ParseStatus, TakesOlderAndNewerDaemons) {
  const auto status = parse_status(R"({"version": "9.0", "node": {"name": "a"}, "new": [1]})");
  ASSERT_TRUE(status.is_ok()) << status.status().message();
  EXPECT_EQ(status->version, "9.0");
  EXPECT_EQ(status->node.name, "a");
  EXPECT_TRUE(status->flows.empty());
}

TEST(ParseStatus, RefusesOtherThings) {
  for (const char* text : {"", "{", "[]", "3", R"({"flows": 3})", R"({"node": {"name": 3}})",
                           R"({"version": null})"}) {
    const auto status = parse_status(text);
    ASSERT_FALSE(status.is_ok()) << text;
    EXPECT_EQ(status.status().code(), StatusCode::Protocol);
  }
}

}  // namespace
}  // namespace braid
