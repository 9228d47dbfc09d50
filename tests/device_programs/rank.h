// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "program.h"

namespace braid::device_programs {

struct Place {
  std::string socket;  // of the rank's daemon
  std::string master_address;
  uint64_t master_node = 0;
  std::string token;  // tells the jobs of this run from others
};

// Runs a program as one of its ranks, and checks each result in device memory, in the order of the
// streams. Returns what was wrong, one fault a line.
std::string run_rank(const Program& program, uint32_t rank, const Place& place);

}  // namespace braid::device_programs
