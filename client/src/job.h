// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <braid.h>
#include <braid_work.h>
#include <sys/types.h>

#include "base/status.h"
#include "device/device_buffers.h"
#include "last_refusal.h"
#include "opening.h"
#include "registry.h"
#include "session.h"
#include "tickets.h"
#include "timeouts.h"

namespace braid::client {

// One rank's membership in one job: what a braid_job is. It opens the job and takes leave, and owns
// what braid.h's other functions are about. Any thread; one at a time opens it.
class Job {
 public:
  // A job that is yet to be opened: by open(), or by open_within() again and again.
  static Status start(const braid_job_options* options, std::unique_ptr<Job>& job);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Waits until all ranks are there. The first error ends the attempt.
  Status open();
  // Waits so long at most. `is_new`: it is open now, and was not before.
  Status open_within(uint32_t timeout_ms, bool& is_new);
  bool is_open() const { return tickets_.has_value(); }
  // Ok if it is open, and this is the process that opened it.
  Status check_usable() const;

  // Takes leave of the daemon; destroying the job then frees everything. Does nothing a second
  // time.
  Status leave(const char* reason);
  // The process ends, perhaps in the middle of a call on this job.
  void leave_at_exit(uint64_t deadline_ns);

  uint32_t rank() const { return rank_.rank; }
  uint32_t world_size() const { return rank_.world_size; }
  // When it is open. 0: the daemon does not say.
  uint32_t nodes() const { return nodes_; }

  LastRefusal& refusal() { return refusal_; }

  // From here on: of a job that is open.

  Registry& registry() { return registry_; }
  Tickets& tickets() { return *tickets_; }
  DeviceBuffers& device() { return *device_; }
  // All ranks at once: how many levels operations on device memory have.
  Status open_levels(void* stream, uint32_t timeout_ms, LevelChoice& choice);
  // Ends it on all ranks, because of what has happened here; if that is CANCELLED, only leaves it.
  // Nobody waits for an answer.
  void fail(const Status& failure);
  // What has ended the job, if it has failed.
  Status current_failure();
  // Tells the daemon of placed work; nobody waits for an answer.
  Status tell_work(const braid_work* work);
  // For how long the daemon is waited for; 0: without a limit.
  void set_patience(uint32_t patience_ms) { session_.set_patience(patience_ms); }
  void set_timeout(uint32_t timeout_ms);
  void extend_timeout(uint32_t more_ms);

 private:
  using Lock = std::unique_lock<std::mutex>;

  explicit Job(JobRequest request);
  Status check_process() const;
  void leave_with(Lock& lock, std::string reason, uint64_t deadline_ns);
  Status closed() const;

  const pid_t process_;
  const JobRequest request_;
  const Rank rank_;
  Session session_;
  Timeouts timeouts_;  // with the session's mutex
  Registry registry_;
  std::optional<Opening> opening_;  // until it is open
  bool takes_work_ = false;         // the daemon may be told of placed work
  uint32_t nodes_ = 0;              // 0: the daemon does not say
  LastRefusal refusal_;
  std::optional<Tickets> tickets_;  // from then on, as the next one
  std::optional<DeviceBuffers> device_;
};

}  // namespace braid::client
