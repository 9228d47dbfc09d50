// SPDX-License-Identifier: Apache-2.0
#include "planner/workload.h"

namespace braid {

uint64_t Workload::bytes() const {
  uint64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.bytes;
  return sum;
}

Workload workload_of(const Trace& trace) {
  Workload workload;
  workload.forward_seconds = trace.forward_seconds;
  workload.tensors.reserve(trace.tensors.size());
  double ready_seconds = 0;
  for (auto tensor = trace.tensors.rbegin(); tensor != trace.tensors.rend(); ++tensor) {
    ready_seconds += tensor->backward_seconds;
    workload.tensors.push_back({ready_seconds, tensor->bytes()});
  }
  return workload;
}

}  // namespace braid
