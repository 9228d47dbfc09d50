// SPDX-License-Identifier: Apache-2.0
#include "arena.h"

#include <utility>

#include "base/checked.h"

namespace braid::client {
namespace {

// A little more than asked for, so that many small allocations don't ask the kernel one by one.
constexpr uint64_t kBlockBytes = kHugePageBytes;

}  // namespace

Status Arena::create(uint64_t bytes, SharedMemory::Holes holes) {
  auto memory = SharedMemory::create_input("braid-arena", bytes, holes);
  if (!memory) return memory.status();
  memory_ = std::move(*memory);
  extents_ = ExtentAllocator(bytes);
  blocks_ =
      MemoryBlocks(bytes, kBlockBytes, holes == SharedMemory::Holes::Never ? memory_.size() : 0);
  return {};
}

Status Arena::allocate(uint64_t bytes, std::optional<uint64_t>& offset) {
  const std::lock_guard lock(mutex_);
  const auto found = extents_.allocate(bytes);
  if (!found) return {};
  const MemoryRange extent{*found, extents_.size_of(*found).value()};
  blocks_.use(extent);
  while (const auto wanted = blocks_.next_wanted(memory_.size())) {
    if (Status reserved = memory_.reserve(wanted->offset, wanted->bytes); !reserved) {
      (void)memory_.give_back(wanted->offset, wanted->bytes);  // a part may have come
      blocks_.stop_using(extent);
      blocks_.drop_wanted();
      extents_.release(*found);
      return reserved;
    }
    blocks_.on_reserved(*wanted);
  }
  offset = found;
  return {};
}

uint64_t Arena::used() const {
  const std::lock_guard lock(mutex_);
  return extents_.used();
}

void Arena::allocate_present(uint64_t bytes, std::optional<uint64_t>& offset) {
  const std::lock_guard lock(mutex_);
  const auto found = extents_.allocate(bytes);
  if (!found) return;
  const MemoryRange extent{*found, extents_.size_of(*found).value()};
  if (!blocks_.has_memory(extent)) {
    extents_.release(*found);
    return;
  }
  blocks_.use(extent);
  offset = found;
}

bool Arena::release(uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto bytes = extents_.size_of(offset);
  if (!bytes) return false;
  blocks_.stop_using({offset, *bytes});
  return extents_.release(offset);
}

void Arena::pass_round() {
  const std::lock_guard lock(mutex_);
  blocks_.pass_round();
}

bool Arena::give_back(uint64_t bytes_max, bool at_once) {
  if (memory_.keeps_pages()) return false;
  const std::lock_guard lock(mutex_);
  const auto idle = blocks_.next_idle(bytes_max, at_once);
  if (!idle) return false;
  if (memory_.give_back(idle->offset, idle->bytes)) {
    blocks_.on_given_back(*idle);
    return true;
  }
  blocks_.on_kept(*idle);  // sealed against writing: it stays
  return false;
}

std::optional<uint64_t> Arena::offset_of(const void* memory, uint64_t bytes, bool& fits) const {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
  if (address < begin || address - begin >= memory_.size()) return std::nullopt;
  fits = range_fits(address - begin, bytes, memory_.size());
  return address - begin;
}

}  // namespace braid::client
