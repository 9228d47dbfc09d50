// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "loop/timer.h"
#include "messages/control_messages.h"
#include "proto/control_generated.h"

namespace braid {

// Why did an operation not end in time? Asks every node of the job which of its ranks have not
// submitted it, waits a moment for the answers and makes a sentence of them that names ranks and
// nodes. Control loop only.
class Investigation {
 public:
  static constexpr uint32_t kAnswerTimeoutMs = 1000;

  // `done` comes once, not from within the constructor; it may destroy this object.
  Investigation(Loop& loop, const proto::OperationOverdue& overdue, std::vector<MemberNode> nodes,
                std::function<void(Status)> done);

  const OperationKey& key() const { return key_; }
  void on_report(NodeId from, const proto::OperationReport& report);

 private:
  struct Answer {
    std::vector<uint32_t> missing_ranks;
    std::string detail;
  };
  void conclude();
  std::string troubles() const;

  OperationKey key_;
  std::string description_;
  uint32_t timeout_ms_;
  std::vector<MemberNode> nodes_;
  std::map<NodeId, Answer> answers_;
  std::function<void(Status)> done_;
  Timer deadline_;
};

}  // namespace braid
