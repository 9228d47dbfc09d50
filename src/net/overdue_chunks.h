// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "loop/timer.h"
#include "net/link_flow.h"
#include "net/overdue_budget.h"

namespace braid {

using LinkFlows = std::vector<std::unique_ptr<LinkFlow>>;  // of a link, by index

// Sends chunks a second time that wait for much longer than a link's chunks usually do, over
// another flow: a flow that has lost its last packets waits for TCP's timer, and one that has lost
// several sends little for many round trips; meanwhile the others could have carried its chunks.
// Looks every 2 ms while anything is on its way. I/O loop only; a part of its link.
class OverdueChunks {
 public:
  // `flows` outlives this, and may grow.
  OverdueChunks(IoContext& io, OutgoingFlow::Owner& owner, const LinkFlows& flows);

  // Chunks are sent: those earn second copies.
  void on_sent() {
    budget_.on_sent();
    start();
  }
  void start();
  void stop() { timer_.stop(); }

 private:
  void look();
  uint64_t usual_wait_ns() const;
  void repeat(LinkFlow& from);
  LinkFlow* flow_for_second_copy() const;

  IoContext& io_;
  OutgoingFlow::Owner& owner_;
  const LinkFlows& flows_;
  OverdueBudget budget_;
  uint32_t idle_looks_ = 0;  // with nothing on its way
  Timer timer_;
};

}  // namespace braid
