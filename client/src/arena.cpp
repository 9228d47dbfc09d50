// SPDX-License-Identifier: Apache-2.0
#include "arena.h"

#include "base/checked.h"

namespace braid::client {
namespace {

// A little more than asked for, so that many small allocations don't ask the kernel one by one.
constexpr uint64_t kReserveStepBytes = kHugePageBytes;

}  // namespace

Status Arena::create(uint64_t bytes) {
  auto memory = SharedMemory::create("braid-arena", bytes, SharedMemory::Access::ReadOnly);
  if (!memory) return memory.status();
  memory_ = std::move(*memory);
  extents_ = ExtentAllocator(bytes);
  return {};
}

Status Arena::allocate(uint64_t bytes, std::optional<uint64_t>& offset) {
  const std::lock_guard lock(mutex_);
  const auto found = extents_.allocate(bytes);
  if (!found) return {};
  if (extents_.high_water() > reserved_) {
    const uint64_t wanted =
        std::min(round_up(extents_.high_water(), kReserveStepBytes), memory_.size());
    if (Status reserved = memory_.reserve(reserved_, wanted - reserved_); !reserved) {
      extents_.release(*found);
      return reserved;
    }
    reserved_ = wanted;
  }
  offset = found;
  return {};
}

uint64_t Arena::used() const {
  const std::lock_guard lock(mutex_);
  return extents_.used();
}

bool Arena::release(uint64_t offset) {
  const std::lock_guard lock(mutex_);
  return extents_.release(offset);
}

std::optional<uint64_t> Arena::offset_of(const void* memory, uint64_t bytes, bool& fits) const {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
  if (address < begin || address - begin >= memory_.size()) return std::nullopt;
  fits = range_fits(address - begin, bytes, memory_.size());
  return address - begin;
}

}  // namespace braid::client
