// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/status.h"
#include "net/transport.h"

namespace braid {

// Who has asked for the daemon's status and waits for it: the I/O loops are asked about their flows
// first. They are asked once at a time, for all who have asked before, so clients cannot ask faster
// than loops answer. What waits for a client to read it is the connection's to bound. Control loop
// only.
class StatusQueries {
 public:
  // That wait for an answer, of one client; tools have one.
  static constexpr uint32_t kPerClientMax = 16;

  using Flows = std::vector<FlowStatus>;
  // Asks the I/O loops; calls back once, later.
  using Gather = std::function<void(std::function<void(const Flows&)>)>;
  // Once for each query. The client may have gone meanwhile.
  using Answer = std::function<void(uint64_t client, const Flows&)>;

  StatusQueries(Gather gather, Answer answer)
      : gather_(std::move(gather)), answer_(std::move(answer)) {}

  // ResourceExhausted: too many of the client's queries wait already.
  Status add(uint64_t client);

 private:
  using Waiting = std::map<uint64_t, uint32_t>;  // how many queries, by client

  void gather();
  void finish(const Flows& flows);

  const Gather gather_;
  const Answer answer_;
  bool is_gathering_ = false;
  Waiting asked_;    // since the I/O loops were asked
  Waiting pending_;  // before: to be answered
};

}  // namespace braid
