// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <cuda.h>

namespace braid::client {

// A number in host memory that CUDA has registered: streams write it and wait for it, threads, too.
// So neither side calls the other. It counts pieces, grows, and wraps.
class Word {
 public:
  Word() = default;
  Word(uint32_t* host, CUdeviceptr device) : host_(host), device_(device) {}

  uint32_t load() const { return std::atomic_ref(*host_).load(std::memory_order_acquire); }
  void store(uint32_t number) const {
    std::atomic_ref(*host_).store(number, std::memory_order_release);
  }
  // For streams.
  CUdeviceptr device() const { return device_; }

 private:
  uint32_t* host_ = nullptr;
  CUdeviceptr device_ = 0;
};

// What the streams of a lane and its threads tell each other. Each counts to the number of a piece.
struct Words {
  Word input_staged;   // by a stream: the inputs up to this piece are in host memory
  Word input_over;     // by a thread: the daemon reads none of them any more
  Word result_staged;  // by a thread: the results up to this piece are in host memory
  Word result_over;    // by a stream: they are in device memory
  Word taken_over;     // by a stream: the same for results that a thread has taken
};

}  // namespace braid::client
