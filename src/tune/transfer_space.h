// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tune/search_space.h"

namespace braid {

// What a daemon's tuner may choose from, by the names of the configuration's keys: flows_per_link,
// streams, unit_bytes, chunk_bytes, window_bytes, direct_bytes, two_hops_bytes, halving_bytes.
// Sizes in bytes. And hierarchical: 1 is no, 2 is yes.
std::span<const std::string_view> transfer_parameters();
bool is_transfer_parameter(std::string_view name);

struct TransferSpaceOptions {
  NamedValues defaults;             // of every parameter; 0: it stays as it is, as 1
  std::vector<std::string> pinned;  // these stay, too
  uint64_t flows_max = 16;          // but never fewer than the defaults have
  uint64_t chunk_bytes_max = 512 << 10;
};

// Powers of two around what is usual, and the defaults. A chunk fits its unit and its window; what
// is direct fits the largest chunk.
Result<SearchSpace> make_transfer_space(const TransferSpaceOptions& options);

}  // namespace braid
