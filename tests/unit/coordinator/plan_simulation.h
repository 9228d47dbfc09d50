// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/plan_director.h"
#include "loop/loop.h"
#include "planning/plan_book.h"

namespace braid::testing {

// The planning of one job on several nodes, in a time of its own: a PlanBook on each node, trainers
// that submit at random speeds, and the coordinator's PlanDirector. Messages arrive in the order in
// which each pair of nodes has sent them, after random delays. A step's results come when all ranks
// have submitted it; trainers may be a few steps ahead of them.
class PlanSimulation {
 public:
  PlanSimulation(Loop& loop, uint32_t seed);

  // Until all trainers have submitted all steps and all messages have arrived. What went wrong
  // first, or an empty string.
  std::string run();
  // Plan changes that all nodes made; how often a proposal was dropped; submissions kept back.
  uint32_t changes() const { return changes_; }
  uint32_t refusals() const { return refusals_; }
  uint32_t kept_back() const { return kept_back_; }
  uint32_t tuning_refusals() const { return tuning_refusals_; }
  bool is_tuned() const {
    return director_->tuning_json().find(R"("state":"over")") != std::string::npos;
  }

 private:
  static constexpr uint64_t kJob = 9, kSet = 5;
  struct Rank {
    uint32_t node = 0;
    uint32_t local_rank = 0;
    uint64_t step = 0;
    std::vector<uint32_t> to_submit;  // of this step, the next one last
    double speed = 1;
    std::map<uint64_t, uint64_t> last_passed;  // by tensor: the step
  };
  struct Step {
    uint64_t submitted = 0;
    uint64_t passed = 0;
    std::map<uint64_t, std::pair<uint64_t, uint64_t>> groups;  // by tensor: head, hash
    std::map<uint64_t, TransferSettings> settings;             // by tensor
  };
  struct Message {
    uint64_t due = 0;
    flatbuffers::DetachedBuffer bytes;
  };

  uint32_t random(uint32_t from, uint32_t to) {
    return std::uniform_int_distribution<uint32_t>(from, to)(random_);
  }
  void begin_step(Rank& rank);
  bool may_submit(const Rank& rank) const;
  void submit(Rank& rank);
  void on_passed(uint32_t node, const Submission& submission, const OperationForm& form);
  void reduce(uint64_t step);
  void post(std::deque<Message>& link, ControlBuffer& message);
  bool deliver();
  void deliver_to_node(uint32_t node, const proto::ControlMessage& message);
  void check(bool holds, const std::string& what);
  void check(const Status& status) { check(status.is_ok(), status.message()); }

  std::mt19937 random_;
  const uint32_t nodes_, tensors_, ahead_;
  const uint64_t steps_;
  const uint64_t delay_max_ns_;
  const bool has_tuning_;
  std::vector<std::unique_ptr<PlanBook>> books_;
  std::vector<Rank> ranks_;
  std::map<uint64_t, Step> open_steps_;
  uint64_t reduced_ = 0;  // so many steps
  std::vector<std::deque<Message>> to_node_, to_director_;
  std::unique_ptr<PlanDirector> director_;
  uint64_t now_ns_ = 1'000'000'000;
  uint64_t startup_ns_ = 0;
  uint64_t tickets_ = 0;
  uint32_t changes_ = 0, refusals_ = 0, kept_back_ = 0, tuning_refusals_ = 0;
  std::string wrong_;
};

}  // namespace braid::testing
