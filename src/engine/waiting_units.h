// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/operation_run.h"

namespace braid {

// The units of one job that wait for a stream, operation by operation. The next one is the most
// urgent operation's, of equals the one that came first. That none waits for ever, the operation
// that has waited longest is next once kOvertakenMax units of others went before it.
class WaitingUnits {
 public:
  static constexpr uint32_t kOvertakenMax = 16;

  struct Unit {
    std::shared_ptr<OperationRun> run;
    size_t index;
  };

  bool is_empty() const { return operations_.empty(); }
  // All units of the operation that have not begun wait from now on.
  void add(std::shared_ptr<OperationRun> run) { operations_.push_back({std::move(run), 0}); }
  // Takes the next unit; those that have begun meanwhile wait no more. Nothing: none waits.
  std::optional<Unit> take();

 private:
  static bool is_over(Unit& operation);
  size_t next() const;

  std::vector<Unit> operations_;  // in order of arrival, each with its first unit that may wait
  uint32_t overtaken_ = 0;        // units that went before the first operation's since it is first
};

}  // namespace braid
