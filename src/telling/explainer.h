// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/lifetime.h"
#include "explain/explanation.h"
#include "loop/timer.h"
#include "loop/work_thread.h"

namespace braid {

// Says why a job's steps take what they take: gathers what all of its nodes know twice, kLookMs
// apart, and lets explain() compare both on another thread. Who asks about a job that is looked at
// already gets the same answer. Control loop only.
class Explainer {
 public:
  static constexpr uint32_t kLookMs = 2000;
  static constexpr size_t kJobsMax = 32;  // that are looked at at one time
  static constexpr size_t kJobsOfUserMax = 8;
  static constexpr size_t kAskersMax = 64;  // of one job

  using Gathered = std::function<void(std::shared_ptr<const std::string>)>;
  using Explained = std::function<void(const Result<Explanation>&)>;
  // Where it looks.
  struct Sources {
    // What all nodes of the job tell, as parse_job_facts() reads one object of its list; calls back
    // once, later, after some seconds at the latest. An error: it cannot be asked now.
    std::function<Status(uint64_t job_key, Gathered)> gather;
    // What makes, on any thread, the job's plans as parse_live_plans() reads one object of its
    // list; nothing: it is over.
    std::function<std::function<std::string()>(uint64_t job_key)> plans;
  };

  // `worker`: compares; it outlives this object. `look_ms`: between the looks.
  Explainer(Loop& loop, WorkThread& worker, Sources sources, uint32_t look_ms = kLookMs)
      : loop_(loop), worker_(worker), look_ms_(look_ms), sources_(std::move(sources)) {}
  ~Explainer() { lifetime_.end(); }

  // `explained` comes once, never from within this call, within about kLookMs and twice the time of
  // gathering. ResourceExhausted: too much is asked already. `user`: who asks; none: this daemon
  // itself.
  Status explain(uint64_t job_key, std::optional<uid_t> user, Explained explained);

 private:
  struct Look {
    explicit Look(Loop& loop) : pause(loop) {}
    std::optional<uid_t> user;                  // who asked first
    std::shared_ptr<const std::string> before;  // what was gathered first
    Timer pause;
    std::vector<Explained> askers;
  };

  void look_again(uint64_t job_key);
  void compare(uint64_t job_key, const std::shared_ptr<const std::string>& after);
  void conclude(uint64_t job_key, const Result<Explanation>& explanation);

  Loop& loop_;
  WorkThread& worker_;
  const uint32_t look_ms_;
  const Sources sources_;
  std::map<uint64_t, std::unique_ptr<Look>> looks_;  // by job
  Lifetime lifetime_;
};

}  // namespace braid
