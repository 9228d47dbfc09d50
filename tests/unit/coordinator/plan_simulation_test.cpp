// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"
#include "coordinator/plan_director.h"
#include "loop/loop.h"
#include "loop/loop_testing.h"
#include "planning/plan_book.h"
#include "planning/plan_testing.h"

namespace braid::testing {
namespace {

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

constexpr uint64_t kSubmitNs = 2'000'000;  // between two submissions, at speed 1

TransferSettings settings_of(const OperationForm& form) {
  return form.settings == nullptr ? TransferSettings{} : *form.settings;
}

PlanSimulation::PlanSimulation(Loop& loop, uint32_t seed)
    : random_(seed),
      nodes_(random(2, 4)),
      tensors_(random(3, 9)),
      ahead_(random(0, 2)),
      steps_(random(100, 250)),
      delay_max_ns_(uint64_t{random(1, 400)} * 1'000'000),
      has_tuning_(seed % 3 != 0),
      to_node_(nodes_),
      to_director_(nodes_) {
  for (uint32_t node = 0; node < nodes_; ++node) {
    std::vector<uint32_t> local_ranks(random(1, 2));
    std::iota(local_ranks.begin(), local_ranks.end(), static_cast<uint32_t>(ranks_.size()));
    books_.push_back(std::make_unique<PlanBook>(JobLabel{"train"}, kJob, nodes_, local_ranks,
                                                PlanActions{[this, node](ControlBuffer& message) {
                                                  post(to_director_[node], message);
                                                  return Status::ok();
                                                }}));
    for (uint32_t i = 0; i < local_ranks.size(); ++i) {
      check(register_planned(*books_[node], i, kSet, planned_tensors(tensors_, 250'000)));
      Rank rank;
      rank.node = node;
      rank.local_rank = i;
      rank.speed = random(5, 30) / 10.0;
      begin_step(rank);
      ranks_.push_back(std::move(rank));
    }
  }
  std::vector<NodeId> ids(nodes_);
  std::iota(ids.begin(), ids.end(), 1);
  PlanningOptions options;
  options.tuning.is_on = has_tuning_;
  options.tuning.steps = JobTuning::kStepsMin;
  options.planner = *find_planner(seed % 2 == 0 ? "streams" : "exact");
  options.answer_timeout_ms = 600'000;  // of the loop's time, in which nothing happens
  director_ = std::make_unique<PlanDirector>(
      PlannedJob{loop, JobLabel{"train"}, kJob, ids,
                 [this](NodeId to, ControlBuffer message) { post(to_node_[to - 1], message); },
                 options.answer_timeout_ms},
      options);
}

void PlanSimulation::check(bool holds, const std::string& what) {
  if (!holds && wrong_.empty()) wrong_ = what;
}

void PlanSimulation::begin_step(Rank& rank) {
  rank.to_submit.resize(tensors_);
  std::iota(rank.to_submit.rbegin(), rank.to_submit.rend(), 0);
  for (uint32_t swaps = random(0, 2); swaps > 0; --swaps)
    std::swap(rank.to_submit[random(0, tensors_ - 1)], rank.to_submit[random(0, tensors_ - 1)]);
}

bool PlanSimulation::may_submit(const Rank& rank) const {
  return rank.step < steps_ && rank.step <= reduced_ + ahead_;
}

void PlanSimulation::submit(Rank& rank) {
  const uint32_t tensor = rank.to_submit.back();
  rank.to_submit.pop_back();
  Submission submission;
  submission.local_rank = rank.local_rank;
  submission.ticket = ++tickets_;
  submission.tensor = hash_of(tensor);
  submission.step = rank.step;
  submission.signature.count = 250'000;
  submission.name = std::make_shared<const std::string>("t" + std::to_string(tensor));
  ++open_steps_[rank.step].submitted;
  if (rank.to_submit.empty()) {
    ++rank.step;
    begin_step(rank);
  }
  const auto planned = books_[rank.node]->plan(submission, kSet, now_ns_);
  if (!planned) return check(planned.status());
  if (!*planned) {
    ++kept_back_;
  } else {
    on_passed(rank.node, submission, *(*planned)->form);
  }
}

// What an operation table would get: all nodes must say the same of a step.
void PlanSimulation::on_passed(uint32_t node, const Submission& submission,
                               const OperationForm& form) {
  const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& one) {
    return one.node == node && one.local_rank == submission.local_rank;
  });
  const std::string what = *submission.name + " step " + std::to_string(submission.step);
  const auto [last, is_first] = rank->last_passed.try_emplace(submission.tensor, submission.step);
  check(is_first ? submission.step == 0 : submission.step == last->second + 1,
        what + " is passed on out of order, twice or never");
  last->second = submission.step;
  Step& step = open_steps_[submission.step];
  const std::pair group{form.group->members[0].tensor, form.group->hash};
  check(step.settings.try_emplace(submission.tensor, settings_of(form)).first->second ==
            settings_of(form),
        what + " travels in different ways");
  check(step.groups.try_emplace(submission.tensor, group).first->second == group,
        what + " is in different groups");
  ++step.passed;
}

// All ranks have submitted the step: its groups are reduced, one after the other.
void PlanSimulation::reduce(uint64_t number) {
  const Step step = std::move(open_steps_.at(number));
  open_steps_.erase(number);
  std::map<uint64_t, uint64_t> bytes;  // by head
  for (const auto& [tensor, group] : step.groups) bytes[group.first] += 1'000'000;
  if (number % 40 == 0) startup_ns_ = random(1, 200) * 100'000;  // the network changes
  for (const auto& [head, size] : bytes) {
    const OperationKey key{kJob, head, number};
    for (const auto& book : books_) {
      book->on_start(key, size);
      book->on_go(key, now_ns_, 0);
    }
    now_ns_ += startup_ns_ + size / 2;
    for (const auto& book : books_) check(book->on_done(key, now_ns_, 0));
  }
  ++reduced_;
}

void PlanSimulation::post(std::deque<Message>& link, ControlBuffer& message) {
  const uint64_t due = now_ns_ + std::uniform_int_distribution<uint64_t>(0, delay_max_ns_)(random_);
  link.push_back({link.empty() ? due : std::max(due, link.back().due), message.Release()});
}

void PlanSimulation::deliver_to_node(uint32_t node, const proto::ControlMessage& message) {
  if (const auto* proposal = message.body_as_PlanProposal())
    return check(books_[node]->on_proposal(parse_plan_proposal(*proposal).value()));
  const auto* verdict = message.body_as_PlanVerdict();
  if (node == 0 && !verdict->holds() && has_tuning_) ++tuning_refusals_;
  if (node == 0) ++(verdict->holds() ? changes_ : refusals_);
  const auto freed = books_[node]->on_verdict(*verdict);
  if (!freed) return check(freed.status());
  for (const auto& [submission, planned] : *freed) on_passed(node, submission, *planned.form);
}

// One message that is due, from a random link.
bool PlanSimulation::deliver() {
  const uint32_t first = random(0, 2 * nodes_ - 1);
  for (uint32_t i = 0; i < 2 * nodes_; ++i) {
    const uint32_t place = (first + i) % (2 * nodes_);
    const uint32_t node = place / 2;
    auto& link = place % 2 == 0 ? to_node_[node] : to_director_[node];
    if (link.empty() || link.front().due > now_ns_) continue;
    const Message message = std::move(link.front());
    link.pop_front();
    const auto& body = *flatbuffers::GetRoot<proto::ControlMessage>(message.bytes.data());
    place % 2 == 0 ? deliver_to_node(node, body) : director_->on_control_message(node + 1, body);
    return true;
  }
  return false;
}

std::string PlanSimulation::run() {
  const uint64_t parts = uint64_t{tensors_} * ranks_.size();
  for (uint32_t idle = 0; idle < 10'000 && wrong_.empty();) {
    ++idle;
    while (deliver()) idle = 0;
    now_ns_ += random(1, static_cast<uint32_t>(kSubmitNs / ranks_.size()));
    Rank& rank = ranks_[random(0, static_cast<uint32_t>(ranks_.size() - 1))];
    if (may_submit(rank) && random(0, 100) < 30 * rank.speed) {
      submit(rank);
      idle = 0;
    }
    while (open_steps_.contains(reduced_) && open_steps_.at(reduced_).passed == parts)
      reduce(reduced_);
    const bool is_over = reduced_ == steps_ &&
                         std::all_of(to_node_.begin(), to_node_.end(),
                                     [](const auto& link) { return link.empty(); }) &&
                         std::all_of(to_director_.begin(), to_director_.end(),
                                     [](const auto& link) { return link.empty(); });
    if (is_over) break;
  }
  check(reduced_ == steps_, "step " + std::to_string(reduced_) + " never ends");
  check(open_steps_.empty(), "more was passed on than submitted");
  for (const auto& book : books_) check(!book->holds_submissions(), "held for ever");
  return wrong_;
}

// Sanitizers look for other things, and are slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint32_t kSeeds = 50;
#else
constexpr uint32_t kSeeds = 300;
#endif

class PlanSimulationTest : public LoopTest {
 protected:
  PlanSimulationTest() { EXPECT_TRUE(set_log_level("warn").is_ok()); }
  ~PlanSimulationTest() override { (void)set_log_level("info"); }
};

// For every step all nodes use the same groups and settings, also while these are tuned; every
// submission is passed on once and in the order of its tensor's steps; nothing is held for ever.
TEST_F(PlanSimulationTest, PlansChangeOnAllNodesAtOneStep) {
  uint32_t changes = 0, refusals = 0, kept_back = 0, tuned = 0, tuning_refusals = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    PlanSimulation simulation(*loop_, seed);
    ASSERT_EQ(simulation.run(), "") << "seed " << seed;
    changes += simulation.changes();
    refusals += simulation.refusals();
    kept_back += simulation.kept_back();
    tuned += simulation.is_tuned() ? 1 : 0;
    tuning_refusals += simulation.tuning_refusals();
  }
  // That what is interesting has happened.
  RecordProperty("changes", static_cast<int>(changes));
  RecordProperty("refusals", static_cast<int>(refusals));
  RecordProperty("kept_back", static_cast<int>(kept_back));
  RecordProperty("tuned", static_cast<int>(tuned));
  EXPECT_GT(tuned, kSeeds / 10);
  EXPECT_GT(tuning_refusals, kSeeds / 10);
  EXPECT_GT(changes, kSeeds);
  EXPECT_GT(refusals, kSeeds / 10);
  EXPECT_GT(kept_back, kSeeds);
}

}  // namespace
}  // namespace braid::testing
