// SPDX-License-Identifier: Apache-2.0
// Hardware queues: what streams have queued, done in order by a thread per queue.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda.h>

#include "capture.h"

namespace fake_cuda {

/// Numbers are guarded by the engine's lock.
struct Stream {
  const int device;
  const bool blocks;  // it is ordered with the legacy default stream
  const bool is_legacy;
  std::size_t queue = 0;
  std::uint64_t queued = 0, done = 0;
  CaptureState capture;
};
using StreamPointer = std::shared_ptr<Stream>;

/// A place in a stream's work: reached when its first `count` works are done. The default is
/// reached at once.
struct Place {
  StreamPointer stream;
  std::uint64_t count = 0;
};

/// What a queue does for a stream. An error is the device's from then on.
using Work = std::function<CUresult()>;

/// All GPUs of the process. It is never destroyed, as its threads run until the process ends. Any
/// thread may call it.
class Engine {
 public:
  static Engine& get();

  StreamPointer create_stream(int device, bool blocks, bool is_legacy);

  /// Queues work behind what its stream has queued, and behind `after`; for streams that block,
  /// behind the legacy default stream, too. Waits until the hardware queue has room.
  Place submit(const StreamPointer& stream, Work work, Place after = {});

  Place end_of(const StreamPointer& stream) const;
  /// The ends of all streams of the device.
  std::vector<Place> ends_of(int device) const;
  bool is_reached(const Place& place) const;
  /// Waits for all places. An error of the device ends its work without effect, so all places are
  /// reached.
  void wait(const std::vector<Place>& places) const;
  void wait_until_idle(int device) const;

  /// CUDA_SUCCESS, or the error that ended the device's work.
  CUresult error(int device) const;
  void fail(int device, CUresult error);
  /// Drops what is queued; what runs ends. Then the device has no error any more.
  void drop(int device);
  /// True if work that waits should end without effect.
  bool is_ending(int device) const;

  /// From then on no wait of a calling thread lasts.
  void end_process();
  bool has_ended() const;

  std::uint64_t pending_works() const;
  /// Called by work that begins or ends to wait for a word.
  void count_word_wait(int change);
  std::uint64_t word_waits() const;
  static bool is_queue_thread();

 private:
  struct Entry {
    StreamPointer stream;
    std::vector<Place> after;
    Work work;
  };
  struct Queue {
    std::deque<Entry> entries;  // the first one is being done
    std::condition_variable work;
    bool has_thread = false;
  };
  struct Device {
    std::deque<Queue> queues;
    std::vector<std::weak_ptr<Stream>> streams;
    std::size_t next_queue = 0;
    CUresult error = CUDA_SUCCESS;
    bool is_dropping = false;
  };

  Engine();
  /// Waits for a change that makes the condition true; before it sleeps on `signal` it looks again
  /// and again for a while, so that a row of calls wakes a queue's thread once and not each time: a
  /// GPU has no thread to wake.
  template <typename Condition>
  void look_and_wait(std::unique_lock<std::mutex>& lock, std::condition_variable& signal,
                     Condition condition);
  void run(int device, std::size_t number);
  std::vector<Place> order(const Stream& stream, Place after) const;
  bool is_reached_locked(const Place& place) const;
  bool is_ending_locked(int device) const;
  std::vector<Place> ends_locked(int device) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable progress_;  // a work is done, or everything ends
  std::vector<Device> devices_;
  bool has_ended_ = false;
  std::atomic<std::uint64_t> changes_ = 0;  // works that were queued or done
  std::uint64_t pending_ = 0, word_waits_ = 0;
};

}  // namespace fake_cuda
