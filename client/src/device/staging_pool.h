// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"

namespace braid::client {

// Memory for the inputs of planned tensors: all of them are on their way at once, so each has its
// own, as long as its operation lasts. A model's gradients have the same sizes in every step, so
// what one step gave back fits the next. Any thread; it outlives its buffers.
class StagingPool {
 public:
  // `make` gives memory that CUDA has registered. It stays until the pool's owner takes it back.
  using Make = std::function<Status(uint64_t bytes, uint8_t*& memory)>;

  explicit StagingPool(Make make) : make_(std::move(make)) {}

  // Memory that goes back to its pool with its owner.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();
    uint8_t* data() const { return memory_; }

   private:
    friend class StagingPool;
    Buffer(StagingPool& pool, uint8_t* memory, uint64_t bytes, size_t slab)
        : pool_(&pool), memory_(memory), bytes_(bytes), slab_(slab) {}

    StagingPool* pool_ = nullptr;
    uint8_t* memory_ = nullptr;
    uint64_t bytes_ = 0;
    size_t slab_ = 0;
  };

  // Calls of one thread at a time, which may take milliseconds when it needs more memory.
  Status take(uint64_t bytes, Buffer& buffer);

 private:
  struct Slab {
    uint8_t* memory = nullptr;
    uint64_t bytes = 0;
    uint64_t filled = 0;
    uint64_t buffers = 0;  // that are taken
  };

  std::optional<Buffer> take_there(uint64_t bytes);
  std::optional<Buffer> take_free(uint64_t bytes);
  std::optional<Buffer> take_from_slab(uint64_t bytes);
  void give_back(const Buffer& buffer);
  void forget_free(size_t slab);

  const Make make_;
  std::mutex mutex_;
  std::vector<Slab> slabs_;
  // By size: the memory that was given back, and its slab.
  std::multimap<uint64_t, std::pair<uint8_t*, size_t>> free_;
};

}  // namespace braid::client
