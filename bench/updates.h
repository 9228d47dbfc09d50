// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "update/update_step.h"

namespace braid::bench {

struct UpdatesOptions {
  uint64_t bytes = 256'000'000;  // of the weights that the owner keeps
  uint32_t repeats = 7;
  std::string vectors = "widest";  // or avx2, baseline
  bool as_json = false;
};

// One optimizer on one shard. Bytes are what the update reads and what it writes, added up: each
// sum and each value of the state once, both ways. The copy has as many bytes of both, half of them
// read.
struct UpdateTimes {
  std::string optimizer;
  DataType dtype = DataType::Float32;
  uint64_t elements = 0;
  uint64_t bytes = 0;
  double update = 0;  // seconds of one core
  double copy = 0;
};

// What an update reads and writes for each element.
uint64_t update_bytes(const UpdateStep& update, DataType dtype);

// One line, without a line end.
std::string updates_heading(uint64_t bytes);
std::string updates_row(const UpdateTimes& times);
std::string updates_json(const UpdateTimes& times);

// Rates of the owner's step on one core, beside those of a copy.
Status run_updates(const UpdatesOptions& options);

}  // namespace braid::bench
