// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "job/job_services.h"
#include "job/node_reach.h"
#include "job/session.h"
#include "operation/message_table.h"
#include "operation/operation_table.h"

namespace braid {

// What a job's ranks on this node have submitted.
struct JobTables {
  std::shared_ptr<ResultMemory> memory;
  std::unique_ptr<OperationTable> operations;
  std::unique_ptr<MessageTable> messages;  // uses the other one
};

// What the tables tell of; all live as long as they.
struct JobTableHooks {
  OperationObserver& observer;
  NodeReach& reach;
  const Peer& coordinator;
  std::function<void(const Status&)> check;           // an error ends the job
  std::function<void(uint64_t now_ns)> on_operation;  // an operation has ended
  std::shared_ptr<JobNumbers> numbers;
};

// `sessions`: by local rank. `services` and `membership` outlive the tables.
Result<JobTables> make_tables(const JobServices& services, const Membership& membership,
                              const std::vector<Session*>& sessions, const JobTableHooks& hooks);

}  // namespace braid
