// SPDX-License-Identifier: Apache-2.0
#include "copies.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <thread>

#include "counts.h"
#include "engine.h"
#include "settings.h"
#include "waits.h"

namespace fake_cuda {
namespace {

/// Does one copy at a time, and no faster than COPY_GB_S says.
class CopyEngine {
 public:
  CUresult run(const Copy& copy) {
    const auto ready = std::chrono::steady_clock::now();
    const std::scoped_lock lock(mutex_);
    CUresult result = CUDA_SUCCESS;
    for (std::size_t row = 0; row < copy.rows && result == CUDA_SUCCESS; ++row) {
      result = Memory::get().copy({copy.to.address + row * copy.to_pitch, copy.to.is_checked},
                                  {copy.from.address + row * copy.from_pitch, copy.from.is_checked},
                                  copy.bytes);
    }
    if (const double rate = settings().copy_gb_s; rate > 0) {
      const double nanoseconds =
          static_cast<double>(copy.bytes) * static_cast<double>(copy.rows) / rate;
      free_at_ = std::max(ready, free_at_) +
                 std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds));
      std::this_thread::sleep_until(free_at_);
    }
    return result;
  }

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point free_at_;
};

CUresult run_copy(int device, const Copy& copy) {
  static auto* const kEngines =
      new std::array<std::array<CopyEngine, 2>, 16>;  // most devices, two directions
  counters().copies += 1;
  counters().copied_bytes += copy.bytes * copy.rows;
  const auto row = static_cast<std::size_t>(device);
  switch (copy.direction) {
    case Direction::kToHost:
      return (*kEngines)[row][0].run(copy);
    case Direction::kToDevice:
      return (*kEngines)[row][1].run(copy);
    case Direction::kWithin:
      break;
  }
  for (std::size_t one = 0; one < copy.rows; ++one) {
    const CUresult result = Memory::get().copy(
        {copy.to.address + one * copy.to_pitch, copy.to.is_checked},
        {copy.from.address + one * copy.from_pitch, copy.from.is_checked}, copy.bytes);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

/// `is_host`: the side is given as host memory. Says whether it is registered.
CUresult check_side(Side& side, std::size_t bytes, bool is_host, bool is_written) {
  if (side.address == 0 || side.address + bytes < side.address) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto range = Memory::get().find(side.address, bytes);
  side.is_checked = range.has_value();
  if (!range) {
    // Memory that is registered in part, or belongs to the GPU in part, is a mistake.
    return is_host && !Memory::get().touches(side.address, bytes) ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_VALUE;
  }
  const bool is_read_only = (range->flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
  return (is_host && range->is_device) || (is_written && is_read_only) ? CUDA_ERROR_INVALID_VALUE
                                                                       : CUDA_SUCCESS;
}

}  // namespace

CUresult check_stream(const StreamPointer& stream) {
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return stream->device == *current_device() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult queue_copy(Call& call, Copy copy, const StreamPointer& stream, bool waits) {
  if (const CUresult result = check_stream(stream); result != CUDA_SUCCESS) return result;
  if (copy.bytes == 0 || copy.rows == 0) return CUDA_SUCCESS;
  const bool to_host = copy.direction == Direction::kToHost,
             from_host = copy.direction == Direction::kToDevice;
  if (const CUresult result = check_side(copy.to, copy.to_bytes(), to_host, true);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (const CUresult result = check_side(copy.from, copy.from_bytes(), from_host, false);
      result != CUDA_SUCCESS) {
    return result;
  }
  CUresult captured = CUDA_SUCCESS;
  if (is_captured(*stream, captured)) return captured;
  const bool is_unregistered = !copy.to.is_checked || !copy.from.is_checked;
  if (is_unregistered && !waits) {
    ++counters().unregistered_copies;
  }
  const int device = stream->device;
  const Place end = Engine::get().submit(stream, [device, copy] { return run_copy(device, copy); });
  return is_unregistered || waits ? wait_for(call, end) : CUDA_SUCCESS;
}

}  // namespace fake_cuda
