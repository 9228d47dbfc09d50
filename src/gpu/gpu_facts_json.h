// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "gpu/gpu_facts.h"

// GpuFacts as a part of larger JSON. Unknown fields are ignored and missing ones left at their
// defaults.
namespace braid {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(GpuFacts::Reason, name, since)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(GpuFacts::Process, pid, memory_bytes, job, rank)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    GpuFacts, index, name, uuid, pci, numa_node, near_rails, read_at, error, clock_mhz,
    clock_max_mhz, reasons, temperature_celsius, power_watts, power_limit_watts, utilization,
    memory_used_bytes, memory_bytes, ecc_corrected, ecc_uncorrected, ecc_uncorrected_at, xid_errors,
    last_xid, last_xid_at, pcie_generation, pcie_generation_max, pcie_width, pcie_width_max,
    pcie_replays, processes, other_processes)

}  // namespace braid
