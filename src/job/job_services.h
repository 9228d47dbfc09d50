// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "control/control_plane.h"
#include "ipc/user_quotas.h"
#include "job/registration.h"
#include "loop/loop.h"
#include "loop/work_thread.h"
#include "net/transport.h"
#include "operation/engine_pool.h"
#include "operation/job_board.h"
#include "operation/job_counters.h"
#include "proto/chunk.h"

namespace braid {

class Job;

// What jobs use of the daemon; outlives them all.
struct JobServices {
  Loop& loop;
  const Clock& clock;
  ControlPlane& control_plane;
  Transport& transport;
  EnginePool& engines;
  JobCounters& counters;
  JobBoard& board;
  WorkThread& worker;
  uint64_t result_bytes_max = 0;
  uint32_t chunk_bytes_max = proto::kChunkBytesMax;  // that the transport is set up for
  std::shared_ptr<UserQuotas> quotas{};              // none: users are not told apart
  std::function<void()> on_job_closed{};             // may come from within a call into the job
  std::function<void(const Job&, const Status& reason)> on_job_failed{};  // as well, before that
  UserWork* user_work = nullptr;  // that would hold up the loop
  uint32_t rails = 1;
  bool tries_few_flows = false;  // of what is not planned, where rank 0 is here: one for each rail
  const uint32_t* progress_seconds = nullptr;  // see JobProgress; 0: never
};

}  // namespace braid
