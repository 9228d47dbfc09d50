// SPDX-License-Identifier: Apache-2.0
#include "ipc/extent_allocator.h"

#include <algorithm>
#include <iterator>

#include "base/checked.h"

namespace braid {

ExtentAllocator::ExtentAllocator(uint64_t capacity) : capacity_(capacity) {
  if (capacity > 0) gaps_.emplace(0, capacity);
}

std::optional<uint64_t> ExtentAllocator::allocate(uint64_t bytes) {
  if (bytes > capacity_) return std::nullopt;  // also keeps the rounding below from overflowing
  const uint64_t alignment = bytes > kLargeBytes ? kLargeAlignment : kSmallAlignment;
  const uint64_t size = round_up(std::max<uint64_t>(bytes, 1), alignment);
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const auto [gap_offset, gap_bytes] = *gap;
    const uint64_t offset = round_up(gap_offset, alignment);
    const uint64_t skipped = offset - gap_offset;
    if (!range_fits(skipped, size, gap_bytes)) continue;
    gaps_.erase(gap);
    if (skipped > 0) gaps_.emplace(gap_offset, skipped);
    const uint64_t rest = gap_bytes - skipped - size;
    if (rest > 0) gaps_.emplace(offset + size, rest);
    used_extents_.emplace(offset, size);
    used_ += size;
    high_water_ = std::max(high_water_, offset + size);
    return offset;
  }
  return std::nullopt;
}

bool ExtentAllocator::release(uint64_t offset) {
  const auto extent = used_extents_.find(offset);
  if (extent == used_extents_.end()) return false;
  used_ -= extent->second;
  add_gap(offset, extent->second);
  used_extents_.erase(extent);
  return true;
}

void ExtentAllocator::add_gap(uint64_t offset, uint64_t bytes) {
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  gaps_.emplace(offset, bytes);
}

std::optional<uint64_t> ExtentAllocator::size_of(uint64_t offset) const {
  const auto extent = used_extents_.find(offset);
  if (extent == used_extents_.end()) return std::nullopt;
  return extent->second;
}

uint64_t ExtentAllocator::largest_gap() const {
  uint64_t largest = 0;
  for (const auto& [offset, bytes] : gaps_) largest = std::max(largest, bytes);
  return largest;
}

}  // namespace braid
