// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

// The NUMA node of a PCI device ("0000:17:00.0"), by the kernel; -1: not known, or there is one
// node only. `sys`: "/sys". Reads files.
int32_t numa_node_of(const std::string& sys, const std::string& pci);

// Those of the rails (network devices) with the shortest way over PCIe to the device: they share
// most bridges with it; without a common bridge, those of the same NUMA node. Empty: no rail has a
// PCI device, or none is nearer than by the processors' own connection. Reads files.
std::vector<std::string> nearest_rails(const std::string& sys, const std::string& pci,
                                       const std::vector<std::string>& rails);

}  // namespace braid
