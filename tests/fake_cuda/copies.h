// SPDX-License-Identifier: Apache-2.0
// Copies of the GPU: what is copied, and the copy engines that do it.
#pragma once

#include <cstddef>

#include <cuda.h>

#include "calls.h"
#include "context.h"
#include "memory.h"

namespace fake_cuda {

enum class Direction { kToHost, kToDevice, kWithin };

/// `rows` rows of `bytes` bytes. One row is a copy of bytes that stand together.
struct Copy {
  Direction direction;
  Side to, from;
  std::size_t bytes;
  std::size_t rows = 1, to_pitch = 0, from_pitch = 0;

  std::size_t to_bytes() const { return (rows - 1) * to_pitch + bytes; }
  std::size_t from_bytes() const { return (rows - 1) * from_pitch + bytes; }
};

/// Checks both sides, says which are registered, and queues the copy. One from or to unregistered
/// memory is over when this returns, and so is one that `waits`.
CUresult queue_copy(Call& call, Copy copy, const StreamPointer& stream, bool waits = false);

/// CUDA_SUCCESS if work may be queued on this stream by this thread.
CUresult check_stream(const StreamPointer& stream);

}  // namespace fake_cuda
