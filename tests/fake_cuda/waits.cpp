// SPDX-License-Identifier: Apache-2.0
#include "waits.h"

#include "counts.h"
#include "settings.h"

namespace fake_cuda {
namespace {

CUresult outcome(int device) {
  return Engine::get().has_ended() ? CUDA_ERROR_DEINITIALIZED : Engine::get().error(device);
}

}  // namespace

CUresult wait_for(Call& call, const Place& place) {
  ++counters().host_waits;
  call.let_others_begin();
  Engine::get().wait({place});
  return place.stream == nullptr ? CUDA_SUCCESS : outcome(place.stream->device);
}

CUresult wait_for_gpu(Call& call, int device) {
  if (settings().frees == Frees::kLock) {
    call.hold_all();
    Engine::get().wait_until_idle(device);
  } else {
    call.let_others_begin();
    Engine::get().wait(Engine::get().ends_of(device));
  }
  return outcome(device);
}

void wait_before_free(Call& call, int device) {
  if (settings().frees != Frees::kNow) {
    wait_for_gpu(call, device);
  }
}

void wait_before_registering(Call& call, int device) {
  if (settings().frees == Frees::kLock) {
    wait_for_gpu(call, device);
  }
}

}  // namespace fake_cuda
