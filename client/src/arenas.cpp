// SPDX-License-Identifier: Apache-2.0
#include "arenas.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/checked.h"
#include "left_behind.h"

namespace braid::client {
namespace {

constexpr uint64_t kPageBytes = 4096;
// The first arena never loses a page. So the daemon, which has to know whether an input has pages,
// asks the kernel once for each page, and not with each of the small operations whose inputs lie
// here.
constexpr uint64_t kFirstArenaBytes = 16ull << 20;
constexpr uint64_t kNextArenaBytes = 64ull << 20;
// For the tables of operations whose input fills the rest. Such a table lies in the input's arena:
// if there were no room for it, the input would have to be copied to where there is.
constexpr uint64_t kTablesBytes = 1ull << 20;
constexpr uint64_t kRoundNs = 5'000'000'000;
// Small pages take half a millisecond, and the trainer waits.
constexpr uint64_t kPieceBytes = 4ull << 20;

}  // namespace

Status Arenas::make(uint64_t bytes, std::unique_ptr<Arena>& arena) {
  const uint64_t in_use = used();
  if (!is_allowed(bytes, in_use)) {
    return make_status(StatusCode::ResourceExhausted,
                       "the input arenas have no room for {} bytes: {} of {} are in use; raise "
                       "braid_job_options.arena_bytes",
                       bytes, in_use, bytes_max_);
  }
  uint64_t together = 0;
  for (uint32_t i = 0; i < size(); ++i) together += arenas_[i]->size();
  if (size() == proto::kArenasMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "none of the {} input arenas, which are the most, has room for {} bytes: {} "
                       "of {} are in use",
                       size(), bytes, in_use, together);
  }
  const uint64_t left = bytes_max_ - std::min(together, bytes_max_);
  const bool is_first = size() == 0;
  const uint64_t natural = std::min(
      std::max({together, is_first ? kFirstArenaBytes : kNextArenaBytes, bytes + kTablesBytes}),
      left);
  give_back_all();
  auto made = std::make_unique<Arena>();
  BRAID_RETURN_IF_ERROR(
      made->create(round_up(std::max({natural, bytes, uint64_t{1}}), kPageBytes),
                   is_first ? SharedMemory::Holes::Never : SharedMemory::Holes::Possible));
  arena = std::move(made);
  return {};
}

void Arenas::add(std::unique_ptr<Arena> arena) {
  const uint32_t count = size();
  BRAID_ASSERT(count < proto::kArenasMax, "make() says when there are enough");
  arenas_[count] = std::move(arena);
  count_.store(count + 1, std::memory_order_release);
}

uint64_t Arenas::used() const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < size(); ++i) bytes += arenas_[i]->used();
  return bytes;
}

Status Arenas::allocate(uint64_t bytes, std::optional<ArenaPlace>& place) {
  if (!is_allowed(bytes, used())) return {};
  for (uint32_t i = 0; i < size(); ++i) {
    std::optional<uint64_t> offset;
    arenas_[i]->allocate_present(bytes, offset);
    if (offset) {
      place = ArenaPlace{i, *offset};
      return {};
    }
  }
  for (uint32_t i = 0; i < size(); ++i) {
    BRAID_RETURN_IF_ERROR(allocate_in(i, bytes, place));
    if (place) break;
  }
  return {};
}

Status Arenas::allocate_in(uint32_t arena, uint64_t bytes, std::optional<ArenaPlace>& place) {
  std::optional<uint64_t> offset;
  BRAID_RETURN_IF_ERROR(arenas_[arena]->allocate(bytes, offset));
  if (offset) place = ArenaPlace{arena, *offset};
  return {};
}

bool Arenas::release(const ArenaPlace& place) {
  return arenas_[place.arena]->release(place.offset);
}

void Arenas::give_back_idle(uint64_t now_ns) {
  uint64_t round_end_ns = round_end_ns_.load(std::memory_order_relaxed);
  if (now_ns >= round_end_ns &&
      round_end_ns_.compare_exchange_strong(round_end_ns, now_ns + kRoundNs)) {
    for (uint32_t i = 0; i < size(); ++i) arenas_[i]->pass_round();
    is_giving_back_ = true;
  }
  if (!is_giving_back_.load(std::memory_order_relaxed)) return;
  for (uint32_t i = 0; i < size(); ++i) {
    if (arenas_[i]->give_back(kPieceBytes, false)) return;
  }
  is_giving_back_ = false;
}

// As often as there are arenas, at most, so no loop takes again what went back in each step.
void Arenas::give_back_all() {
  for (uint32_t i = 0; i < size(); ++i) {
    while (arenas_[i]->give_back(arenas_[i]->size(), true)) {
    }
  }
}

void Arenas::leave_behind() {
  for (uint32_t i = 0; i < size(); ++i) client::leave_behind(std::move(arenas_[i]));
  count_ = 0;
}

std::optional<ArenaPlace> Arenas::place_of(const void* memory, uint64_t bytes, bool& fits) const {
  for (uint32_t i = 0; i < size(); ++i) {
    if (const auto offset = arenas_[i]->offset_of(memory, bytes, fits))
      return ArenaPlace{i, *offset};
  }
  return std::nullopt;
}

}  // namespace braid::client
