// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loop/timer.h"
#include "net/fair_queue.h"
#include "net/link_numbers.h"
#include "net/overdue_chunks.h"
#include "net/silent_flows.h"

namespace braid {

// Looks at a link every SilentFlows::kLookEveryMs while anything is on its way, and a little
// longer: gives up flows that have gone silent, says where packets of full size are lost, and shows
// what is on its way in the link's numbers. I/O loop only; a part of its link.
class LinkWatch {
 public:
  // All that is passed by reference outlives this; `flows` may grow.
  LinkWatch(IoContext& io, const Peer& peer, const LinkFlows& flows, const FairQueue& queue,
            LinkNumbers& numbers);

  void start();
  // Asks on each flow whether the other side answers.
  void prove();
  // Nothing is on its way any more.
  void stop();

 private:
  void look();
  void give_up(LinkFlow& flow);
  std::string describe_full_size_loss(const LinkFlow& flow) const;
  void show_traffic(bool is_quiet);

  IoContext& io_;
  const Peer& peer_;
  const LinkFlows& flows_;
  const FairQueue& queue_;
  LinkNumbers& numbers_;
  SilentFlows silent_flows_;
  std::vector<FlowWait> waits_;  // of flows_, while it looks at them
  bool tells_trouble_ = false;   // in numbers_
  uint32_t quiet_looks_ = 0;     // with nothing on its way
  Timer timer_;
};

}  // namespace braid
