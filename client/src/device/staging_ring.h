// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"

namespace braid::client {

// Whether a counter that wraps has come as far as `number`: as CUDA's CU_STREAM_WAIT_VALUE_GEQ has
// it.
inline bool has_reached(uint32_t counter, uint32_t number) {
  return static_cast<int32_t>(counter - number) >= 0;
}

// Memory that pieces go through, in the order of their numbers: slabs, which are filled one after
// the other, around and around. A slab is begun again when all pieces that were put into it are
// over. There are more slabs while not all of `bytes_max` are used and the next one is not over, so
// small operations need little memory and large ones are never slower than the network. One thread
// at a time.
class StagingRing {
 public:
  struct Place {
    uint8_t* memory = nullptr;
    // What lay there before: to be over before the memory is written.
    std::optional<uint32_t> after;
  };

  // `make` gives memory that CUDA has registered. It stays until the ring's owner takes it back.
  using Make = std::function<Status(uint64_t bytes, uint8_t*& memory)>;

  StagingRing(uint64_t bytes_max, Make make) : bytes_max_(bytes_max), make_(std::move(make)) {}

  // For piece `number`; those up to `over` are over. Numbers grow, and wrap.
  Status place(uint64_t bytes, uint32_t number, uint32_t over, Place& place);

 private:
  struct Slab {
    uint8_t* memory = nullptr;
    uint64_t bytes = 0;
    bool is_used = false;
    uint32_t last = 0;  // the last piece that was put into it
  };

  bool is_over(const Slab& slab, uint32_t over) const {
    return !slab.is_used || has_reached(over, slab.last);
  }
  Status advance(uint64_t bytes, uint32_t over, Place& place);
  Status add(uint64_t bytes);

  const uint64_t bytes_max_;
  const Make make_;
  std::vector<Slab> slabs_;
  size_t current_ = 0;
  uint64_t filled_ = 0;  // of the current slab
  uint64_t bytes_ = 0;   // of all slabs
};

}  // namespace braid::client
