// SPDX-License-Identifier: Apache-2.0
#include "arena.h"

#include "base/checked.h"

namespace braid::client {
namespace {

// A little more than asked for, so that many small allocations don't ask the kernel one by one.
constexpr uint64_t kReserveStepBytes = kHugePageBytes;

}  // namespace

Error Arena::create(uint64_t bytes) {
  auto segment = Segment::create("braid-arena", bytes, Segment::Access::ReadOnly);
  if (!segment) return from_ipc(segment.error);
  segment_ = std::move(segment.value);
  extents_ = ExtentAllocator(bytes);
  return {};
}

Error Arena::allocate(uint64_t bytes, uint64_t& offset) {
  const std::lock_guard lock(mutex_);
  const auto found = extents_.allocate(bytes);
  if (!found) {
    return make_error(BRAID_ERROR_RESOURCE_EXHAUSTED, "the input arena has no room for ", bytes,
                      " bytes: ", extents_.used(), " of ", extents_.capacity(),
                      " are in use, the largest gap has ", extents_.largest_gap(),
                      "; raise braid_job_options.arena_bytes");
  }
  if (extents_.high_water() > reserved_) {
    const uint64_t wanted =
        std::min(round_up(extents_.high_water(), kReserveStepBytes), segment_.size());
    const IpcError error = segment_.reserve(reserved_, wanted - reserved_);
    if (!error.is_ok()) {
      extents_.release(*found);
      return from_ipc(error);
    }
    reserved_ = wanted;
  }
  offset = *found;
  return {};
}

bool Arena::release(uint64_t offset) {
  const std::lock_guard lock(mutex_);
  return extents_.release(offset);
}

std::optional<uint64_t> Arena::offset_of(const void* memory, uint64_t bytes, bool& fits) const {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const auto begin = reinterpret_cast<uintptr_t>(segment_.data());
  if (address < begin || address - begin >= segment_.size()) return std::nullopt;
  fits = range_fits(address - begin, bytes, segment_.size());
  return address - begin;
}

}  // namespace braid::client
