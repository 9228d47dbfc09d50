// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

// What a rank has told of when it did placed work: items that one rank, the owner, computes for
// all.
struct WorkSpans {
  static constexpr uint32_t kEverybody = UINT32_MAX;  // the owner of what each rank computes

  struct Item {
    std::string name;
    uint32_t owner = kEverybody;
  };
  struct Span {
    uint64_t begin_ns = 0;  // CLOCK_MONOTONIC of the daemon, as the next one
    uint64_t end_ns = 0;
    uint32_t item = 0;
    bool is_wait = false;  // for what the owner computes; else it computes the item
  };

  uint32_t rank = 0;
  std::string work;  // "inverses"
  std::vector<Item> items;
  std::vector<Span> spans;
};

}  // namespace braid
