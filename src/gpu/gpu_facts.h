// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

// Why a GPU's clock is below its maximum: names of GpuFacts::Reason.
inline constexpr std::string_view kSlowedByHeat = "heat";
inline constexpr std::string_view kSlowedByPowerCap = "power_cap";
inline constexpr std::string_view kSlowedByPowerBrake =
    "power_brake";  // an outer power supply asks
inline constexpr std::string_view kSlowedByHardware = "hardware";
inline constexpr std::string_view kSlowedBySetting = "setting";  // somebody has set lower clocks
inline constexpr std::string_view kSlowedByIdleness = "idle";

// One GPU of a node, as NVIDIA's library tells of it, and what was seen of it before. Field names
// are those of the JSON in `braidctl status` and in NodeFacts. Times of day are seconds since 1970.
struct GpuFacts {
  struct Reason {
    std::string name;
    uint64_t since = 0;  // when it was first seen; breaks of less than a minute do not count
  };
  // That computes on it.
  struct Process {
    int64_t pid = 0;  // as the daemon sees it
    uint64_t memory_bytes = 0;
    std::string job{};  // whose trainer it is; empty: of none that is known
    uint32_t rank = 0;  // in this job
  };

  uint32_t index = 0;  // as nvidia-smi counts
  std::string name;    // "NVIDIA H100 80GB HBM3"
  std::string uuid;
  std::string pci;                      // "0000:17:00.0"
  int32_t numa_node = -1;               // -1: not known
  std::vector<std::string> near_rails;  // those with the shortest way over PCIe; empty: not known
  uint64_t read_at = 0;                 // when all of this was so
  // Why nothing more is known now, but for what was seen before; empty: it answers.
  std::string error;
  // From here on: 0, or where it is signed -1, if not known.
  uint32_t clock_mhz = 0;  // of the multiprocessors, as the next one
  uint32_t clock_max_mhz = 0;
  std::vector<Reason> reasons;  // for which the clock is low now
  int32_t temperature_celsius = -1;
  double power_watts = 0;
  double power_limit_watts = 0;
  double utilization = -1;  // 0 to 1: of the last second or less, while something computed
  uint64_t memory_used_bytes = 0;
  uint64_t memory_bytes = 0;
  int64_t ecc_corrected = -1;  // errors since the driver was loaded, as the next one
  int64_t ecc_uncorrected = -1;
  uint64_t ecc_uncorrected_at = 0;  // when the daemon last saw more of them; 0: never
  uint64_t xid_errors = 0;          // since the daemon started
  uint32_t last_xid = 0;
  uint64_t last_xid_at = 0;
  uint32_t pcie_generation = 0;
  uint32_t pcie_generation_max = 0;  // that card and slot allow, as of the width
  uint32_t pcie_width = 0;           // lanes
  uint32_t pcie_width_max = 0;
  int64_t pcie_replays = -1;
  std::vector<Process> processes;
  uint32_t other_processes = 0;  // that the reader may not see, or that are no trainers

  // nullptr: the clock is not low for this reason.
  const Reason* find_reason(std::string_view reason) const;
  // "12:03 UTC"; of another day than the reading "2026-11-28 12:03 UTC".
  std::string format_time_of(uint64_t at) const;
};

// What an Xid means, in a few words: "an uncorrectable memory error". Empty: not one of the common
// ones. From NVIDIA's Xid catalogue.
std::string_view xid_meaning(uint32_t xid);
// It is the program's own fault, as an address that is not its own: the GPU is well.
bool is_xid_of_program(uint32_t xid);

}  // namespace braid
