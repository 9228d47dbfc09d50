// SPDX-License-Identifier: Apache-2.0
#include "job/arena_memory.h"

#include <numeric>
#include <utility>

namespace braid {

void ArenaMemory::look() {
  if (is_looking_) {
    is_asked_again_ = true;
    return;
  }
  is_looking_ = true;
  const auto bytes = std::make_shared<std::vector<uint64_t>>();
  work_.run(
      user_, this,
      [of_ranks = arenas_(), bytes] {
        for (const auto& arenas : of_ranks) {
          uint64_t& of_rank = bytes->emplace_back(0);
          if (arenas == nullptr) continue;
          for (const auto& arena : *arenas) of_rank += arena->memory_bytes();
        }
      },
      [this, bytes] {
        is_looking_ = false;
        bytes_ = std::move(*bytes);
        looked_(std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0}));
        if (std::exchange(is_asked_again_, false)) look();
      });
}

}  // namespace braid
