// SPDX-License-Identifier: Apache-2.0
// Plans are made and trials are chosen on a thread of their own.
#include <atomic>
#include <semaphore>
#include <thread>

#include "coordinator/plan_director_testing.h"

namespace braid {
namespace {

// "exact", once the test lets it; remembers where it was.
class HeldPlanner final : public Planner {
 public:
  Plan plan(const Workload& workload, const CostModel& cost,
            const PlannerOptions& options) const override {
    thread_ = std::this_thread::get_id();
    ++begun_;
    may_go_on_.acquire();
    return (*find_planner("exact"))->plan(workload, cost, options);
  }
  std::string_view name() const override { return "exact"; }
  std::string_view description() const override { return ""; }

  void let_go() { may_go_on_.release(); }
  uint32_t begun() const { return begun_; }
  std::thread::id thread() const { return thread_; }

 private:
  mutable std::counting_semaphore<> may_go_on_{0};
  mutable std::atomic<uint32_t> begun_ = 0;
  mutable std::atomic<std::thread::id> thread_;
};

class PlanDirectorThreadTest : public testing::PlanDirectorTest {
 protected:
  ~PlanDirectorThreadTest() override {
    // A test that failed leaves nobody waiting.
    gate_.release(8);
    for (int i = 0; i < 8; ++i) planner_.let_go();
  }
  void make_on_thread(bool is_tuned = false) {
    PlanningOptions options;
    options.planner = &planner_;
    options.worker = worker_.get();
    options.tuning.is_on = is_tuned;
    options.tuning.defaults.chunk_bytes = 64 << 10;
    make(options);
  }
  void begin_to_plan() {
    tell_all(measured(0));
    run_until([&] { return planner_.begun() == 1; });
  }
  // Whatever was given to the thread before has been done, and its answer taken.
  void finish_work() {
    bool is_done = false;
    ASSERT_TRUE(worker_->run([] {}, [&] { is_done = true; }));
    run_until([&] { return is_done; });
  }
  // The first plan holds, and the thread does nothing more until gate_ opens.
  void plan_and_hold_thread() {
    make_on_thread(true);
    register_all();
    begin_to_plan();
    planner_.let_go();
    run_until([&] { return !sent_.empty(); });
    accept();
    hold_thread();
  }
  void hold_thread() {
    ASSERT_TRUE(worker_->run([&] { gate_.acquire(); }, [] {}));
  }

  HeldPlanner planner_;
  std::counting_semaphore<> gate_{0};  // for the thread itself
  std::unique_ptr<WorkThread> worker_ = std::make_unique<WorkThread>(*loop_, "plan");
};

TEST_F(PlanDirectorThreadTest, APlanIsMadeOffTheLoop) {
  make_on_thread();
  begin_to_plan();
  EXPECT_TRUE(sent_.empty());
  planner_.let_go();
  run_until([&] { return !sent_.empty(); });
  EXPECT_NE(planner_.thread(), std::this_thread::get_id());
  EXPECT_EQ(proposed().groups, (std::vector<std::vector<uint64_t>>{{100, 101}, {102, 103}}));
}

TEST_F(PlanDirectorThreadTest, AJobThatEndsMeanwhileGetsNothing) {
  make_on_thread();
  begin_to_plan();
  director_.reset();
  planner_.let_go();
  finish_work();
  EXPECT_TRUE(sent_.empty());
}

TEST_F(PlanDirectorThreadTest, TheThreadMayEndBeforeTheAnswerIsTaken) {
  make_on_thread();
  begin_to_plan();
  planner_.let_go();
  worker_.reset();
  run_rounds();
  EXPECT_TRUE(sent_.empty());
}

TEST_F(PlanDirectorThreadTest, ThereAreNeverTwoAtOnce) {
  make_on_thread();
  begin_to_plan();
  for (int round = 0; round < 5; ++round) tell_all(measured(0));
  PlanReport other = measured(0);
  other.set = kSet + 1;
  tell_all(other);
  planner_.let_go();
  run_until([&] { return !sent_.empty(); });
  EXPECT_EQ(proposed().set, kSet);
  finish_work();
  EXPECT_EQ(planner_.begun(), 1u);
  // The other set's turn comes with its next reports.
  planner_.let_go();
  tell_all(other);
  run_until([&] { return sent_to<proto::PlanProposal>(10).size() == 2; });
  EXPECT_EQ(sent_to<proto::PlanProposal>(10)[1]->set(), kSet + 1);
}

// The settings of an earlier job hold at once, and planning rests.
TEST_F(PlanDirectorThreadTest, APlanFromBeforeTuningBeganIsDropped) {
  KnowledgeStore knowledge{""};
  KnowledgeEntry known;
  known.key = {77, 4'000'000, 4, 2, 1, 1, 1};
  known.values = {{"flows_per_link", 4}};
  known.gain = 2;
  known.seconds = 1;
  knowledge.add(known);
  PlanningOptions options;
  options.planner = &planner_;
  options.worker = worker_.get();
  options.tuning.is_on = true;
  options.tuning.defaults.chunk_bytes = 64 << 10;
  options.tuning.knowledge = &knowledge;
  make(options);
  begin_to_plan();
  register_all();
  planner_.let_go();
  run_until([&] { return !sent_.empty(); });
  finish_work();
  EXPECT_TRUE(proposed().settings.has_value());
}

TEST_F(PlanDirectorThreadTest, TheNextTrialIsChosenOffTheLoop) {
  plan_and_hold_thread();
  tell_all(report(1));  // tuning begins
  run_rounds(10);
  EXPECT_TRUE(sent_.empty());
  gate_.release();
  run_until([&] { return !sent_.empty(); });
  const PlanProposal first = proposed();
  ASSERT_TRUE(first.settings.has_value());
  accept();
  // Steps that end while the next one is being chosen change nothing.
  hold_thread();
  for (uint64_t step = 0; step < 20; ++step) {
    for (const NodeId node : kNodes)
      tell_step(node, first.number, first.from_step + step, 1'000'000);
  }
  EXPECT_NE(director_->tuning_json(), "[]");  // may be asked for at any time
  run_rounds(10);
  EXPECT_TRUE(sent_.empty());
  gate_.release();
  run_until([&] { return !sent_.empty(); });
  EXPECT_TRUE(proposed().settings.has_value());
}

TEST_F(PlanDirectorThreadTest, AJobThatEndsWhileATrialIsChosenGetsNothing) {
  plan_and_hold_thread();
  tell_all(report(1));
  director_.reset();
  gate_.release();
  finish_work();
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace braid
