// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/status.h"

namespace braid {

// What a codec has lost of a set's tensors so far, on this node: some floats for each element, in
// planes that hold one of them for all elements. Begins with zeros, and takes memory page by page
// as it is written. The elements are read and written on I/O loops, those of one operation by one
// chunk each; the rest is of the control loop.
class ErrorMemory {
 public:
  // ResourceExhausted: there is no such address space.
  static Result<std::shared_ptr<ErrorMemory>> create(uint64_t elements, uint32_t planes);
  // The bytes that create() would take; nothing: no number is so large.
  static std::optional<uint64_t> bytes_of(uint64_t elements, uint32_t planes);

  uint32_t planes() const { return planes_; }
  // How many elements it was made for. There are no others.
  uint64_t size() const { return elements_; }
  std::span<float> elements(uint32_t plane, uint64_t first, uint64_t count);

  // The operations of a step may run at once, for each element is in one of them. Those of another
  // step wait until they are done.
  bool may_begin(uint64_t step) const { return running_ == 0 || step == step_; }
  void begin(uint64_t step);
  // Once for each that has begun.
  void end();

 private:
  struct Free {
    void operator()(float* floats) const { std::free(floats); }
  };
  ErrorMemory(std::unique_ptr<float, Free> floats, uint64_t elements, uint32_t planes)
      : floats_(std::move(floats)), elements_(elements), planes_(planes) {}

  const std::unique_ptr<float, Free> floats_;
  const uint64_t elements_;
  const uint32_t planes_;
  uint64_t step_ = 0;
  uint64_t running_ = 0;  // operations
};

}  // namespace braid
