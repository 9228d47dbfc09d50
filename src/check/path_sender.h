// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "loop/door.h"
#include "loop/timer.h"
#include "net/transport.h"

namespace braid {

// Sends chunks of no job on the links of one I/O loop, to see how many are acknowledged: their
// receiver takes each for a late one, and drops it. They share the link with jobs as those of one
// more job would. Made on the loop before it runs, and destroyed when it does not any more; told
// what to do through its door.
class PathSender {
 public:
  struct Order {
    uint64_t number = 0;  // of the measurement
    NodeId peer = 0;
    uint32_t flows = 0;  // 0: all that jobs use
    uint32_t milliseconds = 0;
    uint32_t chunk_bytes = 0;  // no more than what the link was set up for
    uint32_t chunks_max = 0;   // that are queued or on their way at a time
  };
  struct Report {
    uint64_t number = 0;
    bool had_link = false;
    uint64_t bytes = 0;        // acknowledged while it counted
    uint64_t nanoseconds = 0;  // that it counted
  };

  // `links` outlives it. `reports`: where the reports go; outlives it, too.
  PathSender(Loop& loop, Links& links, Door<Report>& reports);
  ~PathSender();

  // Any thread. An order ends the one before.
  void begin(const Order& order) { orders_.send_unbounded(Order(order)); }

 private:
  class Stream;

  void handle(const Order& order);
  void end();

  Loop& loop_;
  Links& links_;
  Door<Report>& reports_;
  Door<Order> orders_;
  std::shared_ptr<Stream> stream_;  // nullptr: nothing is being sent
  Timer timer_;                     // first the start of counting, then the end
};

}  // namespace braid
