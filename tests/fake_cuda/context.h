// SPDX-License-Identifier: Apache-2.0
// Primary contexts, threads' current ones, and the handles of streams and events.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <cuda.h>

#include "engine.h"

namespace fake_cuda {

CUcontext context_of(int device);
std::optional<int> device_of(CUcontext context);
/// CUDA_SUCCESS, CUDA_ERROR_CONTEXT_IS_DESTROYED or the error that ended the device's work.
CUresult check_context(int device);

void retain_context(int device);
/// The last one ends all that the device does and has. False if it was not retained.
bool release_context(int device);
bool is_context_active(int device);
std::uint64_t active_contexts();

/// The calling thread's contexts.
std::optional<int> current_device();
void push_current(std::optional<int> device);
std::optional<int> pop_current();
void set_current(std::optional<int> device);
bool has_current_stack();

/// An event is reached when the stream is where it was recorded last.
class Event {
 public:
  explicit Event(int device) : device_(device) {}
  int device() const { return device_; }
  void record(Place place);
  void capture(CaptureState state);
  Place place() const;
  CaptureState captured() const;

 private:
  const int device_;
  mutable std::mutex mutex_;
  Place place_;
  CaptureState captured_;
};

CUstream add_stream(StreamPointer stream);
/// The stream of a handle, also of the default streams (0, 1, 2) of the current context. Null if
/// there is none.
StreamPointer stream_of(CUstream handle);
bool remove_stream(CUstream handle);
bool is_default_stream(CUstream handle);

CUevent add_event(int device);
std::shared_ptr<Event> event_of(CUevent handle);
bool remove_event(CUevent handle);

std::uint64_t open_streams();
std::uint64_t open_events();

}  // namespace fake_cuda
