// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device_context.h"
#include "device/device_stream.h"
#include "device/words.h"
#include "gpu/nccl.h"
#include "levels/level_cut.h"

namespace braid::client {

// What the ranks of a node need to meet: made by one of them.
struct LocalIds {
  NcclUniqueId before;
  NcclUniqueId after;
};

// The local level: NCCL between the ranks of a node. There are two communicators, each with a
// stream: what comes before the network does not stand behind what waits for it. Functions that
// queue are for one thread at a time, in the context's scope.
class LocalLevel {
 public:
  static Status make_ids(const Nccl& nccl, LocalIds& ids);
  // Waits until all ranks of the node have come to it, at most until `deadline_ns`.
  static Status open(const Nccl& nccl, const DeviceContext& device, const LevelPlace& place,
                     const LocalIds& ids, uint64_t deadline_ns, std::unique_ptr<LocalLevel>& level);
  // Closes.
  ~LocalLevel();
  LocalLevel(const LocalLevel&) = delete;
  LocalLevel& operator=(const LocalLevel&) = delete;

  DeviceStream& before() { return before_.stream; }
  DeviceStream& after() { return after_.stream; }
  // One group of NCCL's.
  Status queue_before(const std::vector<LocalStep>& steps, DataType dtype, Reduction reduction) {
    return queue(before_, steps, dtype, reduction);
  }
  Status queue_after(const std::vector<LocalStep>& steps, DataType dtype) {
    return queue(after_, steps, dtype, Reduction::Sum);
  }

  // An error that NCCL has met since. Any thread; it calls nothing of CUDA.
  Status error() const;
  // Nothing of it waits for another rank any more: what is queued ends, without a result, and
  // nothing can be queued. Any thread.
  void abort();

  // Aborts, and waits for the streams, 2 s at most. False: they may still run. Any thread; then
  // there is nothing left to do.
  bool close();

  // "NCCL between ranks 4 to 7": for errors.
  const std::string& name() const { return name_; }

 private:
  struct Half {
    explicit Half(const CudaDriver& driver) : stream(driver) {}
    DeviceStream stream;
    NcclComm communicator = nullptr;
  };

  LocalLevel(const Nccl& nccl, const DeviceContext& device, const LevelPlace& place);
  Status join(const LevelPlace& place, const LocalIds& ids, uint64_t deadline_ns);
  Status queue(Half& half, const std::vector<LocalStep>& steps, DataType dtype,
               Reduction reduction);
  Status call(const Half& half, const LocalStep& step, NcclType type, NcclReduction reduction);
  // Between them the communicators stay.
  Status begin_use() const;
  void end_use() const;
  bool await_idle();

  const Nccl& nccl_;
  const DeviceContext& device_;
  const std::string name_;
  Half before_;
  Half after_;

  mutable std::mutex mutex_;
  mutable std::condition_variable unused_;
  mutable uint32_t uses_ = 0;
  bool is_aborted_ = false;
};

}  // namespace braid::client
