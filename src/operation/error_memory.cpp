// SPDX-License-Identifier: Apache-2.0
#include "operation/error_memory.h"

#include "base/assert.h"

namespace braid {

Result<std::shared_ptr<ErrorMemory>> ErrorMemory::create(uint64_t elements, uint32_t planes) {
  std::unique_ptr<float, Free> floats(
      static_cast<float*>(std::calloc(elements, planes * sizeof(float))));
  if (floats == nullptr) {
    return make_status(StatusCode::ResourceExhausted,
                       "no memory for what a codec loses of {} elements", elements);
  }
  return std::shared_ptr<ErrorMemory>(new ErrorMemory(std::move(floats), elements, planes));
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
