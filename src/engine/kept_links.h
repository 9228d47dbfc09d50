// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "engine/link.h"

namespace braid {

// The links that one operation has sent over last, by place in the ring: a chunk looks none up.
// I/O loop only.
class KeptLinks {
 public:
  // nullptr: there is no link to `peer`, which is the node at `place`.
  Link* find(Links& links, uint32_t place, NodeId peer) {
    if (links.lost() != lost_) kept_ = {};
    lost_ = links.lost();
    Kept& kept = kept_[place % kept_.size()];
    if (kept.link == nullptr || kept.place != place) kept = {links.find(peer), place};
    return kept.link;
  }

 private:
  struct Kept {
    Link* link = nullptr;
    uint32_t place = 0;
  };
  std::array<Kept, 4> kept_{};
  uint64_t lost_ = 0;
};

}  // namespace braid
