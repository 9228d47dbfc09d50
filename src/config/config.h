// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid {

inline constexpr const char* kDefaultConfigFile = "/etc/braid/braidd.yaml";
// In node.name, node.address, control.listen and transport.rails: to be found out when the daemon
// starts.
inline constexpr const char* kAuto = "auto";

// In plan.planner: the plan that a job begins with is the one that it keeps.
inline constexpr const char* kFirstPlan = "first";

// Where control.port is not given.
inline constexpr uint16_t kUsualControlPort = 7410;

// What is one or the other.
inline constexpr const char* kOn = "on";
inline constexpr const char* kOff = "off";
// What tune.mode can be, besides kOn and kOff.
inline constexpr const char* kPortfolio = "portfolio";
// What page.access can be, besides kOff and the path of a token's file.
inline constexpr const char* kLoopbackAccess = "loopback";
// In guard.limits: there is none; in debug.pin: nothing is pinned.
inline constexpr const char* kNone = "none";
inline constexpr const char* kAll = "all";

// Everything that a user may set. The defaults are these initializers; what each key means, its
// limits and whether a running daemon can take a new value stand in the table of config_keys.cpp,
// and in docs/configuration.md.
struct DaemonConfig {
  struct Node {
    std::string name = kAuto;     // auto: the host name
    std::string address = kAuto;  // auto: the address of the first rail, IPv4 if it has one
    std::string rack;             // empty: not known
    std::string polling = "adaptive";
    std::string state_directory = kAuto;  // auto: $STATE_DIRECTORY; empty: nothing is kept
    bool operator==(const Node&) const = default;
  };
  struct Control {
    std::optional<uint16_t> port = kUsualControlPort;  // nothing: auto, the kernel chooses
    std::string listen = kAuto;    // auto: node.address with a cluster key, else 127.0.0.1
    std::string cluster_key_file;  // empty: a single node
    uint32_t peer_timeout_ms = 5000;
    bool operator==(const Control&) const = default;
  };
  struct Client {
    std::string socket = "/run/braid/braidd.sock";
    std::string group = "braid";
    uint64_t arena_bytes_max = 64ull << 30;
    uint32_t user_jobs_max = 256;
    uint64_t user_arena_bytes_max = 32ull << 40;
    uint64_t user_result_bytes_max = 0;  // 0: half of the memory there is
    bool operator==(const Client&) const = default;
  };
  struct Transport {
    std::vector<std::string> rails = {kAuto};
    std::vector<std::string> transports = {"tcp"};
    std::string tcp = "native";
    std::string encryption = kOff;  // or kOn
    uint32_t port = 0;              // 0: any
    uint32_t flows_per_link = 0;    // 0: from the number of cores
    uint32_t io_threads = 0;        // 0: from the number of cores
    uint32_t chunk_bytes = 128u << 10;
    uint32_t window_bytes = 512u << 10;
    bool operator==(const Transport&) const = default;
  };
  struct Collective {
    uint64_t unit_bytes = 8ull << 20;
    uint32_t streams = 4;
    // Not given: auto, what the cost of hops and bytes says.
    std::optional<uint64_t> direct_bytes = {};
    std::optional<uint64_t> two_hops_bytes = {};
    std::optional<uint64_t> halving_bytes = {};
    uint32_t operation_timeout_ms = 300'000;
    uint64_t result_memory_max = 0;  // 0: three quarters of the memory there is
    bool operator==(const Collective&) const = default;
  };
  struct Plan {
    std::string planner = "streams";  // or "first"
    bool operator==(const Plan&) const = default;
  };
  struct Tune {
    std::string mode = kOn;  // or kOff, kPortfolio
    bool operator==(const Tune&) const = default;
  };
  struct Guard {
    std::vector<std::string> limits = {"saturation=0.75"};
    bool operator==(const Guard&) const = default;
  };
  struct Metrics {
    std::string address = "127.0.0.1";
    std::optional<uint16_t> port = 9431;  // 0: off; nothing: auto, the kernel chooses
    bool operator==(const Metrics&) const = default;
  };
  struct Page {
    std::string access = kLoopbackAccess;  // or kOff, or the path of a file with a token
    bool operator==(const Page&) const = default;
  };
  struct Gpu {
    uint32_t watch_seconds = 5;  // 0: never
    bool operator==(const Gpu&) const = default;
  };
  struct Log {
    std::string level = "info";
    std::string format = kAuto;  // auto, text or json
    bool operator==(const Log&) const = default;
  };

  // What is not for operators: tests set it, and it is in no document. The values are constants
  // that are right everywhere.
  struct Debug {
    uint32_t connect_timeout_ms = 5000;  // three SYNs of TCP are lost before it is over
    uint32_t jobs_max = 1024;            // on this node at the same time
    uint32_t user_connections_max = 2048;
    uint32_t user_tensors_max = 1u << 20;
    uint32_t user_queries_max = 256;
    uint64_t result_bytes_max = 0;             // 0: as client.arena_bytes_max
    std::vector<std::string> codecs = {kAll};  // that tensors may have
    // Half of the median: chance alone does not keep a flow below that for so long.
    uint32_t slow_flow_percent = 50;
    uint32_t idle_link_seconds = 600;        // jobs that restart find their flows warm
    uint32_t leave_timeout_ms = 43'200'000;  // 12 h: the last rank may write a long checkpoint
    uint32_t min_gain_percent = 3;           // of an iteration's time; less is noise
    std::vector<std::string> pin = {kNone};  // parameters that are not tuned
    uint32_t tune_steps = 72;                // to measure, at most
    uint32_t guard_every_steps = 64;         // 0: never
    uint32_t timeline_events = 65536;        // of each I/O loop: 4 MiB; 0: nothing is noted
    uint32_t explain_seconds = 60;           // 0: never
    uint32_t progress_seconds = 60;          // 0: never
    bool operator==(const Debug&) const = default;
  };

  Node node;
  Control control;
  Client client;
  Transport transport;
  Collective collective;
  Plan plan;
  Tune tune;
  Guard guard;
  Metrics metrics;
  Page page;
  Gpu gpu;
  Log log;
  Debug debug;
  bool operator==(const DaemonConfig&) const = default;
};

}  // namespace braid
