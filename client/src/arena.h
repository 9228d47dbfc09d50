// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "base/status.h"
#include "ipc/extent_allocator.h"
#include "ipc/memory_blocks.h"
#include "ipc/shared_memory.h"

namespace braid::client {

// An input arena: memory that the daemon reads, for braid_allocate and for copies of inputs that
// live elsewhere. What nobody has used for some rounds goes back to the kernel (see MemoryBlocks).
// Any thread.
class Arena {
 public:
  // With Holes::Never nothing of it goes back, however idle.
  Status create(uint64_t bytes, SharedMemory::Holes holes);

  // `offset` of `bytes` whose memory is there for sure; nothing: there is no room for them.
  Status allocate(uint64_t bytes, std::optional<uint64_t>& offset);
  // The same, and nothing as well where the kernel would have to be asked for memory.
  void allocate_present(uint64_t bytes, std::optional<uint64_t>& offset);
  bool release(uint64_t offset);

  void pass_round();
  // Gives back at most so much of what is idle for long enough (`at_once`: of what is idle). False:
  // there is nothing more.
  bool give_back(uint64_t bytes_max, bool at_once);

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
  MemoryBlocks blocks_{0, kHugePageBytes, 0};
};

}  // namespace braid::client
