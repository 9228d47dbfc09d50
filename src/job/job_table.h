// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/lifetime.h"
#include "job/job.h"
#include "loop/loop.h"

namespace braid {

// The jobs that have ranks on this node, by key. Control loop only.
class JobTable {
 public:
  using Jobs = std::unordered_map<uint64_t, std::unique_ptr<Job>>;

  // `on_removed` is told the key of each job that has gone.
  JobTable(Loop& loop, std::function<void(uint64_t key)> on_removed)
      : loop_(loop), on_removed_(std::move(on_removed)) {}
  ~JobTable() { clear(); }

  const Jobs& all() const { return jobs_; }
  size_t size() const { return jobs_.size(); }
  Job* find(uint64_t key) const;  // nullptr: there is none
  Job& add(std::unique_ptr<Job> job);
  void remove(uint64_t key);
  // Closed jobs go on the loop's next round: a job may be in the middle of the call that closed it.
  void remove_closed();
  // Tells nobody.
  void clear();

  size_t running() const;
  size_t starting() const;
  size_t operations_pending() const;
  // The nodes that these jobs send data to.
  std::unordered_set<NodeId> targets() const;

 private:
  Loop& loop_;
  const std::function<void(uint64_t key)> on_removed_;
  Jobs jobs_;
  Lifetime lifetime_;  // of removals that come later
};

}  // namespace braid
