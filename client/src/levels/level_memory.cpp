// SPDX-License-Identifier: Apache-2.0
#include "levels/level_memory.h"

#include <bit>
#include <utility>

namespace braid::client {
namespace {

// For four pieces of a reduce-scatter: while one is copied, NCCL fills the next ones.
constexpr uint64_t kScratchBytesMax = 4 * (8 << 20);
constexpr uint64_t kLevelWordBytes = 64;  // a cache line of its own

}  // namespace

Status LevelMemory::make(const CudaDriver& driver, std::unique_ptr<LevelMemory>& memory) {
  std::unique_ptr<LevelMemory> made(new LevelMemory(driver));
  BRAID_RETURN_IF_ERROR(RegisteredMemory::make(driver, kMemoryPageBytes, made->registered_));
  CUdeviceptr device = 0;
  BRAID_RETURN_IF_ERROR(made->registered_->device_address(device));
  uint8_t* host = made->registered_->data();
  made->reduced_ = Word(reinterpret_cast<uint32_t*>(host), device);
  made->gathered_ =
      Word(reinterpret_cast<uint32_t*>(host + kLevelWordBytes), device + kLevelWordBytes);
  memory = std::move(made);
  return {};
}

LevelMemory::LevelMemory(const CudaDriver& driver)
    : driver_(driver), scratch_(kScratchBytesMax, [this](uint64_t bytes, uint8_t*& memory) {
        CUdeviceptr allocated = 0;
        BRAID_RETURN_IF_ERROR(driver_.check(driver_.MemAlloc(&allocated, bytes), "cuMemAlloc"));
        allocated_.push_back(allocated);
        // An address, of which nothing is read here.
        memory = std::bit_cast<uint8_t*>(allocated);
        return Status();
      }) {}

Status LevelMemory::place_scratch(uint64_t bytes, uint32_t number, const Word& staged,
                                  DeviceStream& writer, CUdeviceptr& scratch) {
  scratch = 0;
  if (bytes == 0) return {};
  StagingRing::Place place;
  BRAID_RETURN_IF_ERROR(scratch_.place(bytes, number, staged.load(), place));
  scratch = reinterpret_cast<CUdeviceptr>(place.memory);
  if (!place.after) return {};
  return writer.wait_for(staged, *place.after);
}

void LevelMemory::release() {
  for (const CUdeviceptr memory : allocated_) (void)driver_.MemFree(memory);
  allocated_.clear();
  registered_.reset();
}

}  // namespace braid::client
