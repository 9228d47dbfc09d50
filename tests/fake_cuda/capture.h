// SPDX-License-Identifier: Apache-2.0
// Stream capture, as far as a library must notice it: captured work is dropped, and no graph comes
// out.
#pragma once

#include <cstdint>
#include <memory>

#include <cuda.h>

namespace fake_cuda {

struct Stream;

/// One capture: its first stream, and the streams that have joined it by waiting for an event.
struct Capture {
  std::uint64_t id;
  const Stream* origin;
  CUstreamCaptureMode mode;
  int thread_id;  // that began it
  bool is_valid = true;
};

/// What a stream or an event has: null if it is not captured.
struct CaptureState {
  std::shared_ptr<Capture> of;
};

/// Sets how this thread's unsafe calls are treated; returns what was set.
CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode);

/// What an unsafe call of this thread (one that may wait, or that takes or gives memory) has to
/// return. If a capture forbids the call, the capture is invalid from then on.
CUresult check_unsafe_call();

CUresult begin_capture(Stream& stream, CUstreamCaptureMode mode);
CUresult end_capture(Stream& stream);
/// Null if the stream is not captured.
std::shared_ptr<const Capture> capture_of(const Stream& stream);
/// The stream's next work is captured with what `from` stands for.
void join_capture(Stream& stream, const CaptureState& from);
/// True if the stream is captured, so that nothing is to be done. `result`: what the call returns
/// then.
bool is_captured(const Stream& stream, CUresult& result);
void invalidate_capture(const Stream& stream);
CaptureState capture_state(const Stream& stream);

}  // namespace fake_cuda
