// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "device/device_carrier.h"
#include "device/device_lane.h"
#include "levels/level_cut.h"
#include "levels/level_memory.h"
#include "levels/level_watch.h"
#include "levels/local_level.h"

namespace braid::client {

class Job;
struct LevelOperation;

// Operations on device memory in two levels: NCCL between the ranks of a node, and a job of their
// own between the ranks that have one local rank on all nodes.
//
//   caller's stream ── event ──► before: NCCL; write `reduced`
//                                  │   lane of the job across: copy, network, copy
//   caller's stream ◄─ event ─── after: wait for the copy; fill with 0xFF; NCCL; write `gathered`
//
// All ranks submit in one order, and on each rank everything that a queued wait depends on is
// queued before it: so it ends even where all streams share one queue of the GPU. What NCCL brings
// is filled before, so that after a failure each part of a result is what it should be, or bytes
// of 0xFF. Functions may be called from any thread.
class TwoLevels : public DeviceCarrier {
 public:
  // What it asks of the job whose operations it carries.
  struct Owner {
    std::function<void(const Status&)> fail;  // ends the job, and the other ranks hear why
    std::function<Status()> failure;          // what has ended it
  };

  // All ranks of the node have come to `local`, those of the job across to `across`.
  static Status open(Owner owner, const LevelPlace& place, const CudaDriver& driver,
                     CUcontext context, std::unique_ptr<Job> across, uint32_t across_tensor,
                     std::unique_ptr<LocalLevel> local, std::unique_ptr<TwoLevels>& levels);
  // Within some seconds.
  ~TwoLevels() override;
  TwoLevels(const TwoLevels&) = delete;
  TwoLevels& operator=(const TwoLevels&) = delete;

  // Looks after it from now on: once, when all ranks have two levels.
  void begin() { watch_.begin(); }
  // Waits, at most until `deadline_ns`, until there is room for one more operation.
  Status await_room(const DeviceRequest& request, uint64_t deadline_ns) const {
    return lane_->await_room(request, deadline_ns);
  }
  // Queues everything. `operation` is one that LevelCut takes. After an error the job fails.
  Status submit(DeviceRequest request, std::shared_ptr<DeviceOperation>& operation);
  Status let_wait(const std::shared_ptr<DeviceOperation>& operation, CUstream stream) override;
  Result<bool> await(DeviceOperation& operation, uint64_t deadline_ns) override;
  void release(const std::shared_ptr<DeviceOperation>& operation) override;

  // The job is over: every stream that waits goes on soon. Calls nothing of CUDA in this thread.
  void stop(const Status& reason, uint64_t deadline_ns);

 private:
  TwoLevels(Owner owner, const LevelPlace& place, std::unique_ptr<Job> across,
            uint32_t across_tensor, std::unique_ptr<LocalLevel> local);

  Status check(const DeviceRequest& request) const;
  Status queue(LevelOperation& operation, DeviceSubmissions& submissions);
  Status queue_before(LevelOperation& operation, const LevelCut& cut,
                      DeviceSubmissions& submissions, std::vector<LevelPiece>& pieces);
  Status queue_after(LevelOperation& operation, const std::vector<LevelPiece>& pieces,
                     DeviceSubmissions& submissions);
  Status wait_for(CUstream stream, DeviceStream& waiting);
  DeviceRequest across_request(const DeviceRequest& request, const AcrossStep& step);

  Result<bool> look();
  Status look_at_network();
  Status in_words_of_all(const Status& failure) const;
  Status look_at(const LevelOperation& operation) const;
  bool has_gathered(const LevelOperation& operation) const;
  Status failure() const;
  Status outcome(const LevelOperation& operation);
  void end(const Status& reason);

  const Owner owner_;
  const LevelPlace place_;
  const std::unique_ptr<Job> across_;
  const uint32_t across_tensor_;
  uint64_t next_across_step_ = 0;  // with the lane's mutex of submissions, as the next one
  uint32_t last_number_ = 0;
  std::unique_ptr<LevelMemory> memory_;
  std::unique_ptr<LocalLevel> local_;
  std::unique_ptr<DeviceLane> lane_;  // of the job across

  std::mutex mutex_;
  std::deque<std::shared_ptr<LevelOperation>> in_flight_;
  LevelWatch watch_;
};

}  // namespace braid::client
