// SPDX-License-Identifier: Apache-2.0
#include "device/staging_memory.h"

#include <utility>

#include "base/checked.h"
#include "left_behind.h"

namespace braid::client {

Status StagingMemory::make_input(uint64_t bytes, uint8_t*& memory) {
  // CUDA registers whole pages, each of them once.
  bytes = round_up(bytes, kMemoryPageBytes);
  void* allocated = nullptr;
  BRAID_RETURN_IF_ERROR(registry_.allocate(bytes + kMemoryPageBytes, &allocated));
  const auto address = reinterpret_cast<uintptr_t>(allocated);
  auto* pages = static_cast<uint8_t*>(allocated) + (round_up(address, kMemoryPageBytes) - address);
  std::unique_ptr<RegisteredMemory> registered;
  if (Status status = RegisteredMemory::register_pages(driver_, pages, bytes, registered);
      !status) {
    (void)registry_.free(allocated);
    return status;
  }
  memory = pages;
  const std::lock_guard lock(mutex_);
  registered_.push_back(std::move(registered));
  arena_memory_.push_back(allocated);
  return {};
}

Status StagingMemory::make_own(uint64_t bytes, uint8_t*& memory) {
  std::unique_ptr<RegisteredMemory> registered;
  BRAID_RETURN_IF_ERROR(RegisteredMemory::make(driver_, bytes, registered));
  memory = registered->data();
  const std::lock_guard lock(mutex_);
  registered_.push_back(std::move(registered));
  return {};
}

Status StagingMemory::device_address(CUdeviceptr& address) {
  const std::lock_guard lock(mutex_);
  return registered_.back()->device_address(address);
}

void StagingMemory::release() {
  const std::lock_guard lock(mutex_);
  registered_.clear();
  for (void* memory : std::exchange(arena_memory_, {})) (void)registry_.free(memory);
}

void StagingMemory::leave_behind() {
  const std::lock_guard lock(mutex_);
  for (std::unique_ptr<RegisteredMemory>& memory : std::exchange(registered_, {}))
    client::leave_behind(std::move(memory));
  if (!std::exchange(arena_memory_, {}).empty()) registry_.arenas().leave_behind();
}

}  // namespace braid::client
