// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "device/device_context.h"
#include "device/pieces.h"
#include "device/words.h"

namespace braid::client {

// A CUDA stream of a lane's own. Every function queues something and returns; it may block where
// the GPU's queue is full. In the context's scope, one thread at a time.
class DeviceStream {
 public:
  explicit DeviceStream(const CudaDriver& driver) : driver_(driver) {}
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  // The stream has the highest priority: nobody should wait for a copy longer than it takes.
  Status open();
  void close();

  // The stream goes on when the event, as it was recorded last, has come.
  Status wait_for(CUevent event);
  // … when the word has come to `number`.
  Status wait_for(const Word& word, uint32_t number);
  // When all before it has ended.
  Status write(const Word& word, uint32_t number);
  // wait_for(), then write(), in one call of CUDA: no other thread's call comes between.
  Status wait_and_write(const Word& awaited, const Word& written, uint32_t number);
  // write(), then wait_for(), in one call of CUDA: it costs as much as either.
  Status write_and_wait(const Word& written, uint32_t written_number, const Word& awaited,
                        uint32_t awaited_number);
  Status record(CUevent event);
  // Rows of a tensor in device memory to host memory, where they lie side by side; and back.
  Status copy_to_host(CUdeviceptr tensor, const Rows& rows, uint8_t* host);
  Status copy_to_device(const uint8_t* host, const Rows& rows, CUdeviceptr tensor);
  // Row i to tensors[i].
  Status copy_to_devices(const uint8_t* host, const Rows& rows,
                         std::span<const CUdeviceptr> tensors);

  Status fill(CUdeviceptr memory, uint64_t bytes, uint8_t value);

  CUstream handle() const { return stream_; }
  // Whether all that was queued has ended; an error of the GPU.
  Result<bool> is_idle() const;

 private:
  const CudaDriver& driver_;
  CUstream stream_ = nullptr;
};

}  // namespace braid::client
