// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

namespace braid {

// Hands out extents [offset, offset + bytes) of memory: the client's of its input arena, the
// daemon's of a job's result memory. First fit from the low end, neighbours that come back are
// joined: what is given back is used again before fresh memory is, so a training loop stays within
// pages it has already touched. Bookkeeping only, it never touches the memory. One thread at a
// time.
class ExtentAllocator {
 public:
  static constexpr uint64_t kSmallAlignment = 64;    // a cache line
  static constexpr uint64_t kLargeAlignment = 4096;  // a page, for extents of more than kLargeBytes
  static constexpr uint64_t kLargeBytes = 64 * 1024;

  explicit ExtentAllocator(uint64_t capacity);

  // The offset of `bytes` (0 counts as 1), or nothing if no gap is large enough.
  std::optional<uint64_t> allocate(uint64_t bytes);
  // False if no extent begins at `offset`.
  bool release(uint64_t offset);
  // Bytes of the extent that begins at `offset`, rounded up to its alignment.
  std::optional<uint64_t> size_of(uint64_t offset) const;

  uint64_t capacity() const { return capacity_; }
  uint64_t used() const { return used_; }  // rounded up to alignment
  // Everything from here on was never handed out.
  uint64_t high_water() const { return high_water_; }
  uint64_t largest_gap() const;
  size_t extents() const { return used_extents_.size(); }

 private:
  void add_gap(uint64_t offset, uint64_t bytes);

  uint64_t capacity_;
  uint64_t used_ = 0;
  uint64_t high_water_ = 0;
  std::map<uint64_t, uint64_t> gaps_;  // offset → bytes; never adjacent, never empty
  std::unordered_map<uint64_t, uint64_t> used_extents_;  // offset → bytes
};

}  // namespace braid
