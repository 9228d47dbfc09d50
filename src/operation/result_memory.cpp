// SPDX-License-Identifier: Apache-2.0
#include "operation/result_memory.h"

#include <utility>

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

ResultMemory::ResultMemory(WorkThread& worker, std::shared_ptr<SharedMemory> memory,
                           std::vector<std::shared_ptr<SharedMemory>> arenas)
    : worker_(worker),
      memory_(std::move(memory)),
      arenas_(std::move(arenas)),
      allocator_(memory_->size()),
      blocks_(memory_->size(), kReserveStepBytes, kKeptBytes) {}

// The thread takes tasks in order: nobody gets the memory that counts no more before it is there.
ResultMemory::~ResultMemory() {
  if (readers_ > 0 || memory_->keeps_pages()) {
    charge_.let_linger();
  } else {
    worker_.post([memory = memory_] { (void)memory->give_back(0, memory->size()); });
  }
}

Result<uint64_t> ResultMemory::allocate(uint64_t bytes) {
  if (!failure_) return failure_;
  const auto offset = allocator_.allocate(bytes);
  if (!offset) {
    return make_status(StatusCode::ResourceExhausted,
                       "{} bytes do not fit: {} of {} bytes of results are in use; release results "
                       "sooner or raise "
                       "client.arena_bytes_max",
                       bytes, allocator_.used(), allocator_.capacity());
  }
  // A memfd has no limit of its own: who asks the kernel for too much meets the OOM killer.
  // What was refused must not count for those that come after it.
  const MemoryRange extent{*offset, allocator_.size_of(*offset).value()};
  if (const uint64_t missing = blocks_.missing_bytes(extent); missing > 0) {
    if (const Status room = charge_.set(blocks_.taken_bytes() + missing); !room) {
      allocator_.release(*offset);
      return room;
    }
  }
  blocks_.use(extent);
  if (const Status growing = grow(); !growing) {
    let_go(*offset);
    return growing;
  }
  return *offset;
}

void ResultMemory::free(uint64_t offset) {
  BRAID_ASSERT(allocator_.size_of(offset).has_value(), "an extent is freed once");
  let_go(offset);
}

void ResultMemory::let_go(uint64_t offset) {
  blocks_.stop_using({offset, allocator_.size_of(offset).value()});
  allocator_.release(offset);
}

// The one place where a job takes memory: the next slice of what its user pays for.
Status ResultMemory::grow() {
  if (is_growing_ || !blocks_.has_wanted()) return Status::ok();
  const MemoryRange slice = blocks_.next_wanted(kReserveSliceBytes).value();
  // What the thread found, and the loop reads after it.
  const auto reserved = std::make_shared<Status>();
  is_growing_ = worker_.run([memory = memory_, reserved,
                             slice] { *reserved = memory->reserve(slice.offset, slice.bytes); },
                            [weak = weak_from_this(), reserved, slice] {
                              if (const auto self = weak.lock()) self->on_slice(slice, *reserved);
                            });
  if (is_growing_) return Status::ok();
  return {StatusCode::ResourceExhausted,
          "too many jobs of this node wait for memory for their results"};
}

void ResultMemory::on_slice(const MemoryRange& slice, const Status& reserved) {
  is_growing_ = false;
  if (reserved.is_ok()) {
    blocks_.on_reserved(slice);
    failure_ = grow();
  } else {
    failure_ = reserved.with_context("no memory for results");
  }
  if (on_growth_) on_growth_(failure_);
}

bool ResultMemory::pass_round() {
  blocks_.pass_round();
  give_back();
  return may_give_back();
}

// The thread takes tasks in order, so what is used again meanwhile is reserved after this.
void ResultMemory::give_back() {
  if (is_giving_back_ || !can_give_back_) return;
  const auto slice = blocks_.next_idle(kReserveSliceBytes);
  if (!slice) return;
  const auto given = std::make_shared<Status>();
  is_giving_back_ =
      worker_.run([memory = memory_, given,
                   slice = *slice] { *given = memory->give_back(slice.offset, slice.bytes); },
                  [weak = weak_from_this(), given, slice = *slice] {
                    if (const auto self = weak.lock()) self->on_given_back(slice, *given);
                  });
  if (!is_giving_back_) blocks_.on_kept(*slice);
}

void ResultMemory::on_given_back(const MemoryRange& slice, const Status& given) {
  is_giving_back_ = false;
  if (given.is_ok()) {
    blocks_.on_given_back(slice);
    (void)charge_.set(blocks_.taken_bytes());
    give_back();
  } else {
    can_give_back_ = false;
    blocks_.on_kept(slice);
  }
}

}  // namespace braid
