// SPDX-License-Identifier: Apache-2.0
// How calls hold their threads.
#pragma once

#include <cuda.h>

#include "calls.h"
#include "engine.h"

namespace fake_cuda {

/// Other calls may begin meanwhile. Returns the error of the place's device, if there is one.
CUresult wait_for(Call& call, const Place& place);

/// Waits for what the GPU has been given before the call. With FREE=locks: until it is idle, and no
/// other call begins.
CUresult wait_for_gpu(Call& call, int device);

/// Before memory is taken from the GPU: as `Frees` says.
void wait_before_free(Call& call, int device);

/// Before memory is given to the GPU.
void wait_before_registering(Call& call, int device);

}  // namespace fake_cuda
