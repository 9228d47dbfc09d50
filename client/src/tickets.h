// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include <braid.h>

#include "base/status.h"
#include "opening.h"
#include "operation.h"
#include "registry.h"
#include "session.h"
#include "timeouts.h"

namespace braid::client {

// The operations of one open job that have a ticket: from braid_submit to braid_release. Gives them
// to the daemon, waits for them and gives out their results. Any thread, if not said otherwise; it
// lives as long as its job, and the session's mutex guards it.
class Tickets {
 public:
  Tickets(Session& session, Timeouts& timeouts, Registry& registry, Rank rank, Opened opened);
  Tickets(const Tickets&) = delete;
  Tickets& operator=(const Tickets&) = delete;

  Status submit(const braid_operation* given, braid_ticket* ticket);
  // `kind`: Send or Receive.
  Status submit_message(const braid_message* given, proto::SubmitKind kind, braid_ticket* ticket);
  Status test(braid_ticket ticket, int* done);
  Status wait(braid_ticket ticket, uint32_t timeout_ms);
  // Waits until the operation has ended, then gives its outcome; false: the deadline came first, or
  // interrupt() when `is_interrupted` says so.
  Result<bool> await(braid_ticket ticket, uint64_t deadline_ns,
                     const std::function<bool()>& is_interrupted);
  // All threads that are in await() ask whether they are interrupted.
  void interrupt();
  Status result(braid_ticket ticket, const void** data, size_t* bytes);
  Status result_of_rank(braid_ticket ticket, uint32_t rank, const void** data, size_t* bytes);
  // The rank whose message a receive has got.
  Status source(braid_ticket ticket, uint32_t* rank);
  Status copy_result(braid_ticket ticket, void* out, size_t bytes);
  Status release(braid_ticket ticket);
  Status take(braid_ticket ticket, uint32_t timeout_ms, void* out, size_t bytes);

  // With the session's mutex held. An error names a ticket of one of these tensors.
  Status check_none_of(uint32_t first_tensor, size_t count) const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  Status admit(const Request& request) const;
  Status give(Lock& lock, Request request, braid_ticket* ticket);
  Status start(Lock& lock, Operation& operation, braid_ticket ticket);
  void forget(braid_ticket ticket);
  void release_copy(Operation& operation);
  Status on_done(const proto::DoneEntry& entry);

  Status find(braid_ticket ticket, Operation*& operation);
  Status find_ended(braid_ticket ticket, Operation*& operation);
  // What has ended the job; Ok: nothing has. A message's error names its other end.
  Status failure_of(const Operation& operation) const;
  Status overdue(const Operation& operation, uint32_t timeout_ms) const;
  std::string describe(const Operation& operation) const;

  Session& session_;
  Timeouts& timeouts_;
  Registry& registry_;
  const Rank rank_;
  const Opened opened_;
  braid_ticket next_ticket_ = 1;
  std::unordered_map<braid_ticket, Operation> operations_;
};

}  // namespace braid::client
