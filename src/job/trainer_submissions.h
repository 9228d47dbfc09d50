// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "ipc/user_quotas.h"
#include "job/held_tickets.h"
#include "job/input_arenas.h"
#include "job/open_request.h"
#include "job/tensor_table.h"
#include "proto/ring.h"

namespace braid {

class Job;

// What one trainer submits through its ring: operations, ends of messages, and results that it
// gives back. Each entry is checked and handed to the job. Control loop only; lives in its Session.
class TrainerSubmissions {
 public:
  // All outlive it. `buffers`: what is copied out of arenas counts there.
  TrainerSubmissions(const OpenRequest& request, InputArenas& arenas, TensorTable& tensors,
                     const UserCharge& buffers)
      : request_(request), arenas_(arenas), tensors_(tensors), buffers_(buffers) {}

  // `timeout_ms`: for operations that give none.
  void limit(uint32_t tickets_max, UserCharge charge, uint32_t timeout_ms) {
    tickets_.limit(tickets_max, std::move(charge));
    timeout_ms_ = timeout_ms;
  }
  // From here on the trainer is a member.
  void begin(Job& job, uint32_t local_rank) {
    job_ = &job;
    local_rank_ = local_rank;
  }
  // An error: what the trainer says cannot be.
  Status take(const proto::SubmitEntry& entry);
  void end() { tickets_.clear(); }

  std::string last_operation() const;  // "'x' step 3", or empty

 private:
  Status release(const proto::SubmitEntry& entry);
  Status take_operation(const proto::SubmitEntry& entry);
  Status take_message(const proto::SubmitEntry& entry);

  const OpenRequest& request_;
  InputArenas& arenas_;
  TensorTable& tensors_;
  const UserCharge& buffers_;
  HeldTickets tickets_;
  uint32_t timeout_ms_ = 0;
  Job* job_ = nullptr;
  uint32_t local_rank_ = 0;
  std::shared_ptr<const std::string> last_name_;
  uint64_t last_step_ = 0;
};

}  // namespace braid
