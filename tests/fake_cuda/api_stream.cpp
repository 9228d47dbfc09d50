// SPDX-License-Identifier: Apache-2.0
// Streams, events and capture.
#include <utility>

#include <cuda.h>

#include "calls.h"
#include "capture.h"
#include "context.h"
#include "engine.h"
#include "waits.h"

using namespace fake_cuda;  // NOLINT: this file is only the API

namespace {

CUresult do_nothing() { return CUDA_SUCCESS; }

// Priorities change nothing here: any number is taken, as the driver takes the nearest one that it
// has.
CUresult make_stream(CUstream* stream, unsigned flags) {
  if (stream == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const bool blocks = flags != CU_STREAM_NON_BLOCKING;
  *stream = add_stream(Engine::get().create_stream(*current_device(), blocks, false));
  return CUDA_SUCCESS;
}

CUresult capture_status(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const StreamPointer stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (is_captured(*stream, result)) {
    *status = result == CUDA_SUCCESS ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                     : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    if (const auto capture = capture_of(*stream); id != nullptr && capture != nullptr)
      *id = capture->id;
  }
  return CUDA_SUCCESS;
}

/// A capture does not allow calls that wait for its stream or ask for it.
CUresult check_not_captured(const Stream& stream) {
  CUresult result = CUDA_SUCCESS;
  if (is_captured(stream, result)) {
    invalidate_capture(stream);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return check_unsafe_call();
}

CUresult check_event(const Event& event) {
  return event.captured().of != nullptr ? CUDA_ERROR_CAPTURED_EVENT : check_unsafe_call();
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned flags) {
  const Call call(Function::kStreamCreate, Needs::kContext);
  return call.is_refused() ? call.refusal() : make_stream(stream, flags);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int /*priority*/) {
  const Call call(Function::kStreamCreateWithPriority, Needs::kContext);
  return call.is_refused() ? call.refusal() : make_stream(stream, flags);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle) {
  const Call call(Function::kStreamDestroy_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  return remove_stream(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  const Call call(Function::kStreamQuery, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  const StreamPointer stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = check_not_captured(*stream); result != CUDA_SUCCESS) return result;
  if (!Engine::get().is_reached(Engine::get().end_of(stream))) return CUDA_ERROR_NOT_READY;
  return Engine::get().error(stream->device);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  Call call(Function::kStreamSynchronize, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  const StreamPointer stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = check_not_captured(*stream); result != CUDA_SUCCESS) return result;
  return wait_for(call, Engine::get().end_of(stream));
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  const Call call(Function::kStreamWaitEvent, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  const StreamPointer stream = stream_of(handle);
  const auto event = event_of(event_handle);
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  if (const auto captured = event->captured(); captured.of != nullptr) {
    join_capture(*stream, captured);
    return CUDA_SUCCESS;
  }
  CUresult result = CUDA_SUCCESS;
  if (is_captured(*stream, result)) {
    invalidate_capture(*stream);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (const Place place = event->place(); place.stream != nullptr) {
    Engine::get().submit(stream, do_nothing, place);
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  const Call call(Function::kStreamIsCapturing, Needs::kContext);
  return call.is_refused() ? call.refusal() : capture_status(handle, status, nullptr);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v1(CUstream handle, CUstreamCaptureStatus* status,
                                           cuuint64_t* id) {
  const Call call(Function::kStreamGetCaptureInfo_v1, Needs::kContext);
  return call.is_refused() ? call.refusal() : capture_status(handle, status, id);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status,
                                           cuuint64_t* id, CUgraph* graph,
                                           const CUgraphNode** dependencies, std::size_t* count) {
  const Call call(Function::kStreamGetCaptureInfo_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (count != nullptr) *count = 0;
  return capture_status(handle, status, id);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status,
                                           cuuint64_t* id, CUgraph* graph,
                                           const CUgraphNode** dependencies,
                                           const CUgraphEdgeData** edges, std::size_t* count) {
  const Call call(Function::kStreamGetCaptureInfo_v3, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return capture_status(handle, status, id);
}

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  const Call call(Function::kStreamBeginCapture_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  const StreamPointer stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  return begin_capture(*stream, mode);
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  const Call call(Function::kStreamEndCapture, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  const StreamPointer stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = nullptr;
  return end_capture(*stream);
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* context) {
  const Call call(Function::kStreamGetCtx,
                  is_default_stream(handle) ? Needs::kContext : Needs::kInit);
  if (call.is_refused()) return call.refusal();
  const StreamPointer stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = context_of(stream->device);
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  const auto needs = is_default_stream(handle) ? Needs::kContext : Needs::kInit;
  const Call call(Function::kStreamGetCtx_v2, needs);
  if (call.is_refused()) return call.refusal();
  const StreamPointer stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = context_of(stream->device);
  if (green != nullptr) *green = nullptr;
  return CUDA_SUCCESS;
}
#endif

CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned flags) {
  const Call call(Function::kEventCreate, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
  if (event == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  *event = add_event(*current_device());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent handle, CUstream stream_handle) {
  const Call call(Function::kEventRecord, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  const StreamPointer stream = stream_of(stream_handle);
  const auto event = event_of(handle);
  if (stream == nullptr || event == nullptr || stream->device != event->device())
    return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  if (is_captured(*stream, result)) {
    event->capture(capture_state(*stream));
    return result;
  }
  event->record(Engine::get().submit(stream, do_nothing));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
  const Call call(Function::kEventQuery, Needs::kInit);
  if (call.is_refused()) return call.refusal();
  const auto event = event_of(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = check_event(*event); result != CUDA_SUCCESS) return result;
  if (!Engine::get().is_reached(event->place())) return CUDA_ERROR_NOT_READY;
  return Engine::get().error(event->device());
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  Call call(Function::kEventSynchronize, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  const auto event = event_of(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = check_event(*event); result != CUDA_SUCCESS) return result;
  return wait_for(call, event->place());
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent handle) {
  const Call call(Function::kEventDestroy_v2, Needs::kContext);
  if (call.is_refused()) return call.refusal();
  return remove_event(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // extern "C"
