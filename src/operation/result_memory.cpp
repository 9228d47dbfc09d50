// SPDX-License-Identifier: Apache-2.0
#include "operation/result_memory.h"

#include <algorithm>

#include "base/checked.h"
#include "operation/share_memory.h"

namespace braid {
namespace {

// Memory is reserved in steps of this size, so that a job soon stops asking the kernel.
constexpr uint64_t kReserveStepBytes = 2 * kHugePageBytes;

}  // namespace

Result<std::shared_ptr<ResultMemory>> ResultMemory::create(
    WorkThread& worker, const std::string& job_name, uint64_t bytes,
    std::vector<std::shared_ptr<SharedMemory>> arenas) {
  auto memory = SharedMemory::create("braid-result", bytes, SharedMemory::Access::ReadOnly);
  if (!memory) return memory.status().with_context("job '" + job_name + "': result memory");
  return std::shared_ptr<ResultMemory>(
      new ResultMemory(worker, share_memory(std::move(memory).value(), worker), std::move(arenas)));
}

Result<uint64_t> ResultMemory::allocate(uint64_t bytes) {
  if (!failure_) return failure_;
  const auto offset = allocator_.allocate(bytes);
  if (!offset) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} bytes do not fit: {} of {} bytes of results are in use; release results "
                       "sooner or raise "
                       "collective.result_bytes_max",
                       bytes, allocator_.used(), allocator_.capacity());
  }
  // A memfd has no limit of its own: who asks the kernel for too much meets the OOM killer.
  // What was refused must not count for those that come after it.
  const uint64_t end = *offset + allocator_.size_of(*offset).value();
  const uint64_t needed = std::min(round_up(end, kReserveStepBytes), memory_->size());
  if (needed > charge_.amount()) {
    if (const Status room = charge_.set(needed); !room) {
      allocator_.release(*offset);
      return room;
    }
  }
  if (const Status growing = grow(); !growing) {
    allocator_.release(*offset);
    return growing;
  }
  return *offset;
}

void ResultMemory::free(uint64_t offset) {
  BRAID_ASSERT(allocator_.release(offset), "an extent is freed once");
}

// The one place where a job takes memory: the next slice of what its user pays for.
Status ResultMemory::grow() {
  const uint64_t needed = charge_.amount();
  if (is_growing_ || needed <= reserved_bytes_) return Status::ok();
  const uint64_t begin = reserved_bytes_;
  const uint64_t end = std::min(needed, begin + kReserveSliceBytes);
  // What the thread found, and the loop reads after it.
  const auto reserved = std::make_shared<Status>();
  is_growing_ = worker_.run(
      [memory = memory_, reserved, begin, end] { *reserved = memory->reserve(begin, end - begin); },
      [weak = weak_from_this(), reserved, end] {
        if (const auto self = weak.lock()) self->on_slice(end, *reserved);
      });
  if (is_growing_) return Status::ok();
  return {StatusCode::ResourceExhausted,
          "too many jobs of this node wait for memory for their results"};
}

void ResultMemory::on_slice(uint64_t end, const Status& reserved) {
  is_growing_ = false;
  if (reserved.is_ok()) {
    reserved_bytes_ = end;
    failure_ = grow();
  } else {
    failure_ = reserved.with_context("no memory for results");
  }
  if (on_growth_) on_growth_(failure_);
}

}  // namespace braid
