// SPDX-License-Identifier: Apache-2.0
#include "job/result_memory.h"

#include "base/checked.h"
#include "ipc/ipc_status.h"

namespace braid {
namespace {

// Memory is reserved in steps of this size, so that a job soon stops asking the kernel.
constexpr uint64_t kReserveStepBytes = 2 * kHugePageBytes;

}  // namespace

Result<std::shared_ptr<ResultMemory>> ResultMemory::create(
    const std::string& job_name, uint64_t bytes, std::vector<std::shared_ptr<Segment>> arenas) {
  auto segment = to_result(Segment::create("braid-result", bytes, Segment::Access::ReadOnly));
  if (!segment) return segment.status().with_context("job '" + job_name + "': result segment");
  return std::shared_ptr<ResultMemory>(
      new ResultMemory(std::move(segment).value(), std::move(arenas)));
}

Result<uint64_t> ResultMemory::allocate(uint64_t bytes) {
  const auto offset = allocator_.allocate(bytes);
  if (!offset) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} bytes do not fit: {} of {} bytes of results are in use; release results "
                       "sooner or raise "
                       "collective.result_bytes_max",
                       bytes, allocator_.used(), allocator_.capacity());
  }
  if (const uint64_t end = allocator_.high_water(); end > reserved_bytes_) {
    const uint64_t target = std::min(round_up(end, kReserveStepBytes), segment_.size());
    if (const Status reserved =
            to_status(segment_.reserve(reserved_bytes_, target - reserved_bytes_));
        !reserved) {
      allocator_.release(*offset);
      return reserved.with_context("no memory for results");
    }
    reserved_bytes_ = target;
  }
  return *offset;
}

void ResultMemory::free(uint64_t offset) {
  BRAID_ASSERT(allocator_.release(offset), "an extent is freed once");
}

}  // namespace braid
