// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/device_context.h"
#include "device/device_stream.h"
#include "device/staging_memory.h"
#include "device/words.h"
#include "registry.h"

namespace braid::client {

// What a lane has on its device: three streams, memory that CUDA has registered, the words in it,
// events. All functions may be called from any thread; each stream is for one at a time.
class DeviceStreams {
 public:
  // Tries whether streams and this process see each other's words. That takes some microseconds
  // when the GPU is idle.
  static Status open(const CudaDriver& driver, CUcontext context, Registry& registry,
                     std::unique_ptr<DeviceStreams>& streams);
  // Waits for the streams, 2 s at most. What they may use later is left behind.
  ~DeviceStreams();
  DeviceStreams(const DeviceStreams&) = delete;
  DeviceStreams& operator=(const DeviceStreams&) = delete;

  const DeviceContext& device() const { return device_; }
  StagingMemory& memory() { return memory_; }
  const Words& words() const { return words_; }
  DeviceStream& inputs() { return inputs_; }
  DeviceStream& results() { return results_; }
  // The stream of the thread that takes results.
  DeviceStream& taking() { return taking_; }

  // Else a thread waits for each copy, and writes the word for its stream.
  bool can_write() const { return can_write_; }
  bool can_wait() const { return can_wait_; }

  // Holds the thread until all that was queued on the stream has ended.
  Status synchronize(DeviceStream& stream);

  Status take_event(CUevent& event);
  // As often as it was taken. Streams that were told to wait for it still do.
  void give_back(CUevent event);

 private:
  DeviceStreams(const CudaDriver& driver, CUcontext context, Registry& registry);
  Status make();
  Status make_words();
  Status choose_way();
  Status try_words();
  bool await_idle();

  DeviceContext device_;
  StagingMemory memory_;
  DeviceStream inputs_;
  DeviceStream results_;
  DeviceStream taking_;
  Words words_;
  bool can_write_ = true;
  bool can_wait_ = true;

  std::mutex mutex_;
  std::vector<CUevent> events_;  // all of them
  std::vector<CUevent> free_events_;
};

}  // namespace braid::client
