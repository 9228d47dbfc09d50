// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "arena.h"
#include "base/status.h"
#include "proto/ring.h"

namespace braid::client {

struct ArenaPlace {
  uint32_t arena = 0;
  uint64_t offset = 0;
};

// The input arenas of a job, numbered as the daemon has them. There is one when the job opens, and
// one more each time that none has room, so that address space and the daemon's limits go to those
// that need it. What is idle goes back to the kernel, a little at a time. Any thread; one at a time
// makes and adds.
class Arenas {
 public:
  // `bytes_max`: what all of them may have in use together.
  explicit Arenas(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // A further arena with room for `bytes`, which add() then adds. It is as large as all before it
  // together, so that few are enough; what is free in those goes back to the kernel, for it was no
  // help. ResourceExhausted: there may be none.
  Status make(uint64_t bytes, std::unique_ptr<Arena>& arena);
  void add(std::unique_ptr<Arena> arena);
  uint32_t size() const { return count_.load(std::memory_order_acquire); }

  // A place for `bytes`, where there is memory already if there is such a place; nothing: none of
  // the arenas has room, or no more may be in use.
  Status allocate(uint64_t bytes, std::optional<ArenaPlace>& place);
  // The same in this arena.
  Status allocate_in(uint32_t arena, uint64_t bytes, std::optional<ArenaPlace>& place);
  bool release(const ArenaPlace& place);

  // To be called often, with the clock's time. It costs next to nothing while nothing is idle.
  void give_back_idle(uint64_t now_ns);
  // Something may still write them, and nobody knows when it ends: they outlive this object.
  void leave_behind();

  uint8_t* at(const ArenaPlace& place) { return arenas_[place.arena]->at(place.offset); }
  // Where `memory` lies; nothing: in none. `fits`: all `bytes` of it lie there.
  std::optional<ArenaPlace> place_of(const void* memory, uint64_t bytes, bool& fits) const;

 private:
  void give_back_all();
  uint64_t used() const;
  bool is_allowed(uint64_t bytes, uint64_t used) const {
    return used <= bytes_max_ && bytes <= bytes_max_ - used;
  }

  const uint64_t bytes_max_;
  std::array<std::unique_ptr<Arena>, proto::kArenasMax> arenas_;
  std::atomic<uint32_t> count_ = 0;  // those before it do not change any more
  std::atomic<uint64_t> round_end_ns_ = 0;
  std::atomic<bool> is_giving_back_ = false;  // in this round something may still be idle
};

}  // namespace braid::client
