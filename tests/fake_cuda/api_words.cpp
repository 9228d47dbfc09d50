// SPDX-License-Identifier: Apache-2.0
// Stream memory operations: streams that write words and wait for them.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <cuda.h>

#include "calls.h"
#include "capture.h"
#include "context.h"
#include "copies.h"
#include "engine.h"
#include "memory.h"
#include "settings.h"

using namespace fake_cuda;  // NOLINT: this file is only the API

namespace {

constexpr unsigned kBatchMost = 256;  // operations, as the driver's manual says

struct WordWork {
  bool is_wait;
  CUdeviceptr address;
  std::uint32_t value;
  unsigned flags;
};

bool is_satisfied(std::uint32_t word, const WordWork& wait) {
  switch (wait.flags & 0x3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::int32_t>(word - wait.value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return word == wait.value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (word & wait.value) != 0;
    default:
      return ~(word | wait.value) != 0;
  }
}

/// Polls: the word comes from the CPU, another stream or another process. The longer it takes, the
/// longer are the pauses.
CUresult wait_for_word(int device, const WordWork& wait) {
  using Microseconds = std::chrono::microseconds;
  constexpr int kSpins = 100;
  const auto begin = std::chrono::steady_clock::now();
  std::uint32_t word = 0;
  for (int poll = 0;; ++poll) {
    const CUresult result = Memory::get().load_word(wait.address, word);
    if (result != CUDA_SUCCESS || is_satisfied(word, wait) || Engine::get().is_ending(device))
      return result;
    if (poll < kSpins) {
      std::this_thread::yield();
      continue;
    }
    const auto waited =
        std::chrono::duration_cast<Microseconds>(std::chrono::steady_clock::now() - begin);
    std::this_thread::sleep_for(std::clamp(waited / 50, Microseconds(20), Microseconds(200)));
  }
}

CUresult run_words(int device, const std::vector<WordWork>& works) {
  for (const WordWork& work : works) {
    CUresult result = CUDA_SUCCESS;
    if (work.is_wait) {
      Engine::get().count_word_wait(1);
      result = wait_for_word(device, work);
      Engine::get().count_word_wait(-1);
    } else {
      result = Memory::get().store_word(work.address, work.value);
    }
    if (result != CUDA_SUCCESS || Engine::get().is_ending(device)) return result;
  }
  return CUDA_SUCCESS;
}

CUresult check_word(const WordWork& work) {
  const unsigned known =
      work.is_wait ? 0x3 : CU_STREAM_WRITE_VALUE_DEFAULT;  // no flush of remote writes
  if ((work.flags & ~known) != 0 || work.address % sizeof(std::uint32_t) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto range = Memory::get().find(work.address, sizeof(std::uint32_t));
  if (!range || (!work.is_wait && (range->flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult queue_words(CUstream handle, std::vector<WordWork> works) {
  if (!settings().words) return CUDA_ERROR_NOT_SUPPORTED;
  const StreamPointer stream = stream_of(handle);
  if (const CUresult result = check_stream(stream); result != CUDA_SUCCESS) return result;
  for (const WordWork& work : works) {
    if (const CUresult result = check_word(work); result != CUDA_SUCCESS) return result;
  }
  CUresult captured = CUDA_SUCCESS;
  if (is_captured(*stream, captured)) return captured;
  const int device = stream->device;
  Engine::get().submit(stream,
                       [device, works = std::move(works)] { return run_words(device, works); });
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                         unsigned flags) {
  const Call call(Function::kStreamWriteValue32_v2, Needs::kContext);
  return call.is_refused() ? call.refusal() : queue_words(stream, {{false, address, value, flags}});
}

CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                        unsigned flags) {
  const Call call(Function::kStreamWaitValue32_v2, Needs::kContext);
  return call.is_refused() ? call.refusal() : queue_words(stream, {{true, address, value, flags}});
}

CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream stream, unsigned count,
                                       CUstreamBatchMemOpParams* operations, unsigned flags) {
  const Call call(Function::kStreamBatchMemOp_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (operations == nullptr || count == 0 || count > kBatchMost || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<WordWork> works;
  for (const CUstreamBatchMemOpParams& one : std::span(operations, count)) {
    if (one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32) {
      works.push_back({true, one.waitValue.address, one.waitValue.value, one.waitValue.flags});
    } else if (one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
      works.push_back({false, one.writeValue.address, one.writeValue.value, one.writeValue.flags});
    } else if (one.operation != CU_STREAM_MEM_OP_BARRIER) {  // each word is a barrier here
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return works.empty() ? CUDA_SUCCESS : queue_words(stream, std::move(works));
}

}  // extern "C"
