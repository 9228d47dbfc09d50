// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "control/control_plane.h"
#include "coordinator/membership.h"
#include "tune/operation_duel.h"

namespace braid {

// What one job finds out by its own operations, one subject at a time. The coordinator's node
// leads: its duels say when all nodes of the job change sides. Control loop only.
class JobDuels {
 public:
  struct Subject {
    // The rival may be tried now; none: never. Asked where this node leads.
    std::function<bool()> may_try;
    // The job goes the rival's way on this node from now on, or the usual one.
    std::function<void(bool rival)> take;
  };
  // By DuelSubject: those that come first are tried first.
  using Subjects = std::array<Subject, static_cast<size_t>(proto::DuelSubject::MAX) + 1>;

  // The first two outlive it.
  JobDuels(ControlPlane& control_plane, const Membership& membership, Subjects subjects);

  // An operation of the job has ended here.
  void on_operation(uint64_t now_ns);
  // The coordinator's word, on its own node, too.
  void on_switch(const proto::DuelSwitch& message);
  const OperationDuel::Finding& finding(proto::DuelSubject subject) const {
    return sides_[static_cast<size_t>(subject)].finding;
  }

 private:
  struct Side {
    Subject subject;
    std::optional<OperationDuel> duel;  // where this node leads
    OperationDuel::Finding finding;
  };

  void let_try(Side& side, uint64_t now_ns);
  void tell(const Side& side, bool rival, const OperationDuel::Finding& found);

  ControlPlane& control_plane_;
  const Membership& membership_;
  std::array<Side, std::tuple_size_v<Subjects>> sides_;
};

}  // namespace braid
