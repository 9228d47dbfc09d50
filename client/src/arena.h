// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "base/status.h"
#include "ipc/extent_allocator.h"
#include "ipc/shared_memory.h"

namespace braid::client {

// An input arena: memory that the daemon reads, for braid_allocate and for copies of inputs that
// live elsewhere. Any thread.
class Arena {
 public:
  Status create(uint64_t bytes);

  // `offset` of `bytes` whose memory is there for sure; nothing: there is no room for them.
  Status allocate(uint64_t bytes, std::optional<uint64_t>& offset);
  bool release(uint64_t offset);

  uint8_t* at(uint64_t offset) { return memory_.data() + offset; }
  // Does [memory, memory + bytes) begin in the arena? Then where; `fits` tells whether it also ends
  // there.
  std::optional<uint64_t> offset_of(const void* memory, uint64_t bytes, bool& fits) const;

  int fd() const { return memory_.fd(); }
  uint64_t size() const { return memory_.size(); }
  uint64_t used() const;

 private:
  SharedMemory memory_;
  mutable std::mutex mutex_;
  ExtentAllocator extents_{0};
  uint64_t reserved_ = 0;  // bytes from the start for which the kernel has promised memory
};

}  // namespace braid::client
