// SPDX-License-Identifier: Apache-2.0
#include "capture.h"

#include <mutex>
#include <utility>
#include <vector>

#include <unistd.h>

#include "engine.h"

namespace fake_cuda {
namespace {

struct Captures {
  std::mutex mutex;
  std::vector<std::weak_ptr<Capture>> open;
  std::uint64_t last_id = 0;
};

Captures& captures() {
  static Captures* const kCaptures = new Captures;
  return *kCaptures;
}

thread_local CUstreamCaptureMode unsafe_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool forbids(const Capture& capture) {
  if (unsafe_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
      capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
    return false;
  }
  return capture.thread_id == gettid() || (unsafe_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                           capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

}  // namespace

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode) {
  return std::exchange(unsafe_mode, mode);
}

CUresult check_unsafe_call() {
  const std::scoped_lock lock(captures().mutex);
  CUresult result = CUDA_SUCCESS;
  for (const auto& weak : captures().open) {
    if (const auto capture = weak.lock(); capture != nullptr && forbids(*capture)) {
      capture->is_valid = false;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return result;
}

CUresult begin_capture(Stream& stream, CUstreamCaptureMode mode) {
  const std::scoped_lock lock(captures().mutex);
  if (stream.is_legacy) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (stream.capture.of != nullptr) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  stream.capture.of =
      std::make_shared<Capture>(Capture{++captures().last_id, &stream, mode, gettid()});
  std::erase_if(captures().open, [](const auto& one) { return one.expired(); });
  captures().open.push_back(stream.capture.of);
  return CUDA_SUCCESS;
}

CUresult end_capture(Stream& stream) {
  const std::scoped_lock lock(captures().mutex);
  const auto capture = stream.capture.of;
  if (capture == nullptr) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  if (capture->origin != &stream) {
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread_id != gettid()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  // Other streams and events see that it is over.
  capture->origin = nullptr;
  stream.capture.of = nullptr;
  std::erase_if(captures().open, [&](const auto& one) { return one.lock() == capture; });
  return capture->is_valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

std::shared_ptr<const Capture> capture_of(const Stream& stream) { return capture_state(stream).of; }

void join_capture(Stream& stream, const CaptureState& from) {
  const std::scoped_lock lock(captures().mutex);
  if (from.of != nullptr && from.of->origin != nullptr) {
    stream.capture = from;
  }
}

bool is_captured(const Stream& stream, CUresult& result) {
  const auto state = capture_state(stream);
  if (state.of == nullptr) {
    return false;
  }
  const std::scoped_lock lock(captures().mutex);
  result = state.of->is_valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return true;
}

void invalidate_capture(const Stream& stream) {
  if (const auto state = capture_state(stream); state.of != nullptr) {
    const std::scoped_lock lock(captures().mutex);
    state.of->is_valid = false;
  }
}

CaptureState capture_state(const Stream& stream) {
  const std::scoped_lock lock(captures().mutex);
  const bool is_open = stream.capture.of != nullptr && stream.capture.of->origin != nullptr;
  return is_open ? stream.capture : CaptureState{};
}

}  // namespace fake_cuda
