// SPDX-License-Identifier: Apache-2.0
#include "operation/error_memory.h"

#include <algorithm>

#include "base/assert.h"
#include "base/checked.h"

namespace braid {

std::optional<uint64_t> ErrorMemory::bytes_of(uint64_t elements, uint32_t planes) {
  return (CheckedNumber(elements) * planes * sizeof(float)).value();
}

Result<std::shared_ptr<ErrorMemory>> ErrorMemory::create(uint64_t elements, uint32_t planes) {
  std::unique_ptr<float, Free> floats;
  if (const auto bytes = bytes_of(elements, planes); bytes && *bytes <= PTRDIFF_MAX)
    floats.reset(static_cast<float*>(std::calloc(std::max<uint64_t>(*bytes, 1), 1)));
  if (floats == nullptr) {
    return make_status(StatusCode::ResourceExhausted,
                       "no memory for what a codec loses of {} elements", elements);
  }
  return std::shared_ptr<ErrorMemory>(new ErrorMemory(std::move(floats), elements, planes));
}

std::span<float> ErrorMemory::elements(uint32_t plane, uint64_t first, uint64_t count) {
  BRAID_ASSERT(plane < planes_ && range_fits(first, count, elements_),
               "the memory was made for these elements");
  return {floats_.get() + plane * elements_ + first, count};
}

void ErrorMemory::begin(uint64_t step) {
  BRAID_ASSERT(may_begin(step), "the operations of another step are not done");
  step_ = step;
  ++running_;
}

void ErrorMemory::end() {
  BRAID_ASSERT(running_ != 0, "more operations are done than have begun");
  --running_;
}

}  // namespace braid
