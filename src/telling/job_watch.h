// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/clock.h"
#include "base/lifetime.h"
#include "explain/findings_board.h"
#include "loop/timer.h"
#include "telling/explainer.h"

namespace braid {

// Has jobs explained every so often, for the metrics: those that this node looks after. Each job
// has one such node. Its timer runs while there are jobs. Control loop only.
class JobWatch {
 public:
  static constexpr uint64_t kLooksPerPeriod = 8;
  static constexpr size_t kJobsAtOnce = 16;  // the others have their turn later

  // `every_ms`: of each job, at least.
  JobWatch(Loop& loop, const Clock& clock, Explainer& explainer, FindingsBoard& board,
           uint64_t every_ms)
      : clock_(clock), explainer_(explainer), board_(board), every_ms_(every_ms), timer_(loop) {}
  ~JobWatch() { lifetime_.end(); }

  // It is explained for the first time after `every_ms`.
  void add(uint64_t job_key);
  // The job is over. One that was not added is ignored.
  void remove(uint64_t job_key);

 private:
  void look();
  void explain(uint64_t job_key);

  const Clock& clock_;
  Explainer& explainer_;
  FindingsBoard& board_;
  const uint64_t every_ms_;
  std::map<uint64_t, uint64_t> asked_at_ns_;  // by job
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace braid
