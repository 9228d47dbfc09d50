// SPDX-License-Identifier: Apache-2.0
#include "device/staging_ring.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"

namespace braid::client {
namespace {

constexpr uint64_t kPlaceAlignment = 256;
constexpr uint64_t kSlabBytesMin = 256 << 10;
constexpr uint64_t kSlabBytesMax = 8 << 20;

}  // namespace

Status StagingRing::place(uint64_t bytes, uint32_t number, uint32_t over, Place& place) {
  place = {};
  if (slabs_.empty() || filled_ + bytes > slabs_[current_].bytes)
    BRAID_RETURN_IF_ERROR(advance(bytes, over, place));
  Slab& slab = slabs_[current_];
  place.memory = slab.memory + filled_;
  filled_ = std::min(slab.bytes, round_up(filled_ + bytes, kPlaceAlignment));
  slab.is_used = true;
  slab.last = number;
  return {};
}

// To the slab that has been there longest, unless a new one saves waiting for it.
Status StagingRing::advance(uint64_t bytes, uint32_t over, Place& place) {
  std::optional<size_t> fitting;
  for (size_t step = 1; step <= slabs_.size() && !fitting; ++step) {
    const size_t next = (current_ + step) % slabs_.size();
    if (slabs_[next].bytes >= bytes) fitting = next;
  }
  if (!fitting || (!is_over(slabs_[*fitting], over) && bytes_ < bytes_max_)) {
    Status added = add(bytes);
    if (added || !fitting) return added;  // else what is there has to do
  }
  if (!is_over(slabs_[*fitting], over)) place.after = slabs_[*fitting].last;
  current_ = *fitting;
  filled_ = 0;
  return {};
}

Status StagingRing::add(uint64_t bytes) {
  Slab slab;
  slab.bytes = std::max({std::bit_ceil(bytes), kSlabBytesMin, std::min(bytes_, kSlabBytesMax)});
  BRAID_RETURN_IF_ERROR(make_(slab.bytes, slab.memory));
  const size_t at = slabs_.empty() ? 0 : current_ + 1;
  slabs_.insert(slabs_.begin() + static_cast<ptrdiff_t>(at), slab);
  bytes_ += slab.bytes;
  current_ = at;
  filled_ = 0;
  return {};
}

}  // namespace braid::client
