// SPDX-License-Identifier: Apache-2.0
// Settings of the fake CUDA driver: environment variables, read at the process's first call. A
// variable FAKE_CUDA_… that is unknown or has a wrong value ends the process with a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <cuda.h>

namespace fake_cuda {

/// What a call does before it takes memory from the GPU: cuMemFree, cuMemHostUnregister.
enum class Frees {
  kWait,  // it waits until the GPU has done what was queued before the call
  kLock,  // it waits until the GPU is idle, and no other call of any thread begins meanwhile. So do
          // cuMemHostRegister and cuCtxSynchronize
  kNow,   // it does not wait: work that still uses the memory fails with CUDA_ERROR_ILLEGAL_ADDRESS
};

struct Failure {
  std::string function;  // as in `Settings::missing`
  std::uint64_t call;    // from 1
  CUresult error;
};

struct Settings {
  bool unified = false;    // UNIFIED=1: the CPU may touch device memory
  std::size_t queues = 8;  // QUEUES=1..64: hardware queues of a GPU; streams are dealt out in turn
  std::size_t depth = 1024;  // DEPTH=1..65536: entries of a queue; a call waits until there is room
  Frees frees = Frees::kWait;  // FREE=waits|locks|now
  double copy_gb_s = 0;        // COPY_GB_S=0.001..1000: rate per direction and GPU, in 10^9 bytes/s
  std::optional<std::uint64_t> drift;  // DRIFT=SEED: queues stop now and then, for up to 2 ms
  std::vector<Failure>
      failures;  // FAIL=FUNCTION:CALL[:ERROR],…: that call fails with that CUresult (999)
  std::vector<std::string> missing;  // MISSING=FUNCTION,…: cuGetProcAddress does not find these
  int version = 13000;               // VERSION=11000..99000: what cuDriverGetVersion says
  int devices = 1;                   // DEVICES=0..16
  bool words = true;                 // WORDS=no: no stream memory operations
  std::optional<std::size_t>
      register_max_mib;  // REGISTER_MAX_MIB: more registered memory is refused
  std::string report;    // REPORT=FOLDER: FOLDER/PID.json is written at the process's end
};

/// The functions of FAIL and MISSING are named as cuda.h (cuMemAlloc) or as the library does
/// (cuMemAlloc_v2).
const Settings& settings();

}  // namespace fake_cuda
