// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid {

// Gives turns to the arms that pay: every arm once, then always the one whose mean reward could
// still be the highest. UCB1-TUNED of Auer, Cesa-Bianchi & Fischer, "Finite-time analysis of the
// multiarmed bandit problem", Machine Learning 47 (2002), §4: plain UCB1's margin is so wide that
// some dozens of turns would go to all arms alike.
class Bandit {
 public:
  explicit Bandit(size_t arms) : arms_(arms) {}

  // The arm whose turn it is, the first of equal ones; nothing when all are retired.
  std::optional<size_t> choose() const;
  void reward(size_t arm, double reward);                    // in [0, 1]
  void retire(size_t arm) { arms_[arm].is_retired = true; }  // it has nothing more to give
  uint32_t turns(size_t arm) const { return arms_[arm].turns; }

 private:
  struct Arm {
    uint32_t turns = 0;
    double sum = 0;
    double squares = 0;
    bool is_retired = false;
  };
  double bound(const Arm& arm) const;

  std::vector<Arm> arms_;
  uint32_t turns_ = 0;
};

}  // namespace braid
