// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "engine/operation.h"
#include "ipc/user_quotas.h"

namespace braid {

// The tickets of one trainer's operations that were accepted and not given back. Control loop only.
class HeldTickets {
 public:
  struct Submitted {
    OperationKey key;         // of an operation, as the next one
    uint32_t tensor = 0;      // handle
    bool is_message = false;  // one end of a message between two ranks
  };

  void limit(uint32_t tickets_max, UserCharge charge) {
    tickets_max_ = tickets_max;
    charge_ = std::move(charge);
  }
  // Protocol: more than it said, a ticket that it holds, or none. ResourceExhausted: its user has
  // too many operations.
  Status hold(uint64_t ticket, const Submitted& submitted);
  // Protocol: it holds no such ticket.
  Result<Submitted> give_back(uint64_t ticket);
  void clear() {
    tickets_.clear();
    (void)charge_.set(0);
  }

 private:
  // The quotas have a lock: they hear of every sixteenth ticket.
  static constexpr uint64_t kChargeStep = 16;

  uint32_t tickets_max_ = 0;
  UserCharge charge_;
  std::unordered_map<uint64_t, Submitted> tickets_;
};

inline Status HeldTickets::hold(uint64_t ticket, const Submitted& submitted) {
  if (tickets_.size() >= tickets_max_) {
    return make_status(StatusCode::Protocol, "holds more than the {} tickets it said",
                       tickets_max_);
  }
  BRAID_RETURN_IF_ERROR(charge_.set_in_steps(tickets_.size() + 1, kChargeStep));
  if (ticket == 0 || !tickets_.try_emplace(ticket, submitted).second)
    return make_status(StatusCode::Protocol, "used ticket {} twice", ticket);
  return Status::ok();
}

inline Result<HeldTickets::Submitted> HeldTickets::give_back(uint64_t ticket) {
  const auto held = tickets_.find(ticket);
  if (held == tickets_.end()) {
    return make_status(StatusCode::Protocol, "gave back ticket {}, which it does not hold", ticket);
  }
  const Submitted submitted = held->second;
  tickets_.erase(held);
  (void)charge_.set_in_steps(tickets_.size(), kChargeStep);
  return submitted;
}

}  // namespace braid
