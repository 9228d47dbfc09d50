// SPDX-License-Identifier: Apache-2.0
// Trainers that register and submit random and extreme numbers: what is accepted adds up, and the
// daemon goes on.
#include <algorithm>
#include <cstring>
#include <random>

#include "job/manager_world.h"
#include "planning/plan_testing.h"
#include "proto/update.h"
#include "update/shard_state.h"

namespace braid {
namespace {

using testing::TestTrainer;
using Described = TestTrainer::Described;

// Numbers as somebody would choose them who looks for sums that wrap.
class ExtremeNumbers {
 public:
  explicit ExtremeNumbers(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t bound) { return random_() % bound; }
  bool one_in(uint64_t many) { return below(many) == 0; }

  // Elements, bytes, offsets.
  uint64_t number() {
    uint64_t next = 0;
    switch (below(7)) {
      case 0:
        next = below(4);
        break;
      case 1:
        next = below(300'000);
        break;
      case 2:
        next = (uint64_t{1} << below(64)) + below(3) - 1;
        break;
      case 3:
        next = UINT64_MAX - below(100'000);
        break;
      case 4:  // with those before it a small number, modulo 2^64
        next = below(1000) - sum_;
        break;
      case 5:
        next = (uint64_t{1} << (62 + below(2))) - below(1000) - last_;
        break;
      default:
        next = random_() >> below(64);
    }
    sum_ += next;
    last_ = next;
    return next;
  }
  uint64_t small_or(uint64_t most) { return one_in(3) ? number() : below(most); }

  Described tensor(const std::string& name) {
    static constexpr const char* kCodecs[] = {"int8", "topk:ratio=0.5", "2bit", "1bit", "dgc"};
    Described one{name, 0, one_in(2) ? below(3000) : number()};
    one.dtype = static_cast<uint8_t>(one_in(3) ? below(kDataTypeCount + 1) : 0);
    one.backward_order = static_cast<uint32_t>(one_in(2) ? below(4) : number());
    one.is_planned = !one_in(4);
    one.is_dynamic = one_in(one.is_planned ? 20 : 3);
    if (one.is_planned && one_in(4)) one.codec = kCodecs[below(std::size(kCodecs))];
    return one;
  }
  // As they come in one message.
  std::vector<Described> tensors(const std::string& name) {
    sum_ = last_ = 0;
    std::vector<Described> all;
    const uint64_t count = 1 + below(6);
    const auto slots = static_cast<uint8_t>(one_in(2) ? below(4) : 0);
    for (uint64_t i = 0; i < count; ++i) {
      all.push_back(tensor(name + "." + std::to_string(i)));
      if (all.back().is_planned) all.back().state_slots = slots;
      if (one_in(3)) all.back().dtype = 0;
    }
    return all;
  }

 private:
  std::mt19937_64 random_;
  uint64_t sum_ = 0;
  uint64_t last_ = 0;
};

using Exact = unsigned __int128;
const JobHash kRandomJob(9);

// Tensors that a table has taken and that are planned together, and their true sums.
struct TakenSet {
  explicit TakenSet(std::span<const Tensor> tensors) {
    for (const Tensor& tensor : tensors) {
      if (tensor.plan_set == 0) continue;
      id = tensor.plan_set;
      planned.push_back({tensor.hash, tensor.name, tensor.dtype, tensor.count,
                         tensor.backward_order, tensor.codec, tensor.state_slots});
      elements += tensor.count;
      bytes += Exact{tensor.count} * element_bytes(tensor.dtype);
    }
  }
  uint64_t id = 0;
  std::vector<PlanSet::Tensor> planned;
  Exact elements = 0, bytes = 0;
};

void expect_true_sums(const TakenSet& taken) {
  const PlanSet set(kRandomJob, taken.id, taken.planned);
  ASSERT_TRUE(set.elements() == taken.elements && set.bytes() == taken.bytes);
  for (const auto& group : set.current().groups) {
    Exact end = 0;
    for (const TensorGroup::Member& member : group->members) {
      ASSERT_TRUE(member.offset == end);
      ASSERT_TRUE(Exact{member.first_in_set} + member.count <= taken.elements);
      end += Exact{member.count} * element_bytes(group->dtype);
    }
    ASSERT_TRUE(end == Exact{group->count} * element_bytes(group->dtype));
  }
}

PlanActions expecting_actions() {
  PlanActions actions;
  actions.send = [](ControlBuffer&) { return Status::ok(); };
  actions.keep = [](const PlanSet& set) -> Result<PlanSet::Kept> {
    for (uint32_t i = 0; i < set.codecs().size(); ++i)
      EXPECT_LE(set.coded_elements(i), kSetBytesMax / sizeof(float));
    const PlanSet::Tensor& first = set.tensors().front();
    if (first.state_slots == 0) return PlanSet::Kept();
    const ShardLayout layout{set.elements(), stripe_elements_of(set.elements(), 2), 2, 1};
    EXPECT_TRUE(ShardState::bytes_of(layout, first.state_slots, first.dtype).has_value());
    return PlanSet::Kept();
  };
  return actions;
}

TEST(RandomRegistrationsTest, WhatIsAcceptedAddsUp) {
  uint32_t accepted = 0, refused = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    ExtremeNumbers numbers(seed);
    PlanBook book(JobLabel{"train"}, 9, 2, {0}, expecting_actions());
    for (uint32_t i = 0; i < 3; ++i) {
      const auto registered =
          testing::read_registration(numbers.tensors(std::to_string(i)), kRandomJob);
      ++(registered ? accepted : refused);
      if (!registered) continue;
      const TakenSet taken(registered->tensors);
      ASSERT_TRUE(taken.bytes <= kSetBytesMax);
      if (taken.planned.empty()) continue;
      expect_true_sums(taken);
      ASSERT_TRUE(testing::register_planned(book, 0, taken.id, taken.planned))
          << "what is taken is a set";
    }
    if (HasFatalFailure()) return;
  }
  // Else these numbers test nothing.
  EXPECT_GT(accepted, 500u);
  EXPECT_GT(refused, 500u);
}

// One trainer after the other, whose jobs have this node alone, or b with one more rank.
class RandomTrainerTest : public testing::JobManagerTest,
                          public ::testing::WithParamInterface<uint32_t> {
 protected:
  // Where the trainer's arena has what its submissions name.
  static constexpr uint64_t kTableAt = 512, kUpdateAt = 1024, kInputAt = 4096;

  TestTrainer& open(const std::string& name) {
    TestTrainer& trainer = add_trainer();
    if (GetParam() == 1) {
      trainer.open(name, 0, 1, kThisNode);
    } else {
      const size_t before = control_plane_.sent_to<proto::JoinJob>(b_.id).size();
      trainer.open(name, 0, 2, b_.address);
      wait_for([&] { return control_plane_.sent_to<proto::JoinJob>(b_.id).size() > before; });
      const std::vector<MemberNode> nodes = {{self_, {0}}, {b_, {1}}};
      ++epoch_;
      hear(b_, make_job_start(name, 2, epoch_, kKey + epoch_, nodes));
      settle();
      hear(b_, make_job_go(kKey + epoch_));
    }
    wait_for([&] { return trainer.is_open; });
    return trainer;
  }

  void close(TestTrainer& trainer, const std::string& name) {
    trainer.hang_up();
    if (GetParam() == 2) {
      settle();
      hear(b_, make_job_failed(kKey + epoch_, name, Status(StatusCode::JobFailed, "it has left")));
    }
    wait_for([&] { return statuses().empty(); });
    trainers_.pop_back();
  }

  void register_random(TestTrainer& trainer, ExtremeNumbers& numbers) {
    for (uint32_t i = 0; i < 3; ++i) {
      trainer.refusal.clear();
      const size_t before = trainer.registered.size();
      const auto tensors = numbers.tensors(std::to_string(i));
      trainer.register_described(tensors);
      wait_for([&] {
        return !trainer.refusal.empty() || trainer.registered.size() > before ||
               !trainer.failure.is_ok();
      });
      if (trainer.refusal.empty()) tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
    }
  }

  void submit_random(TestTrainer& trainer, ExtremeNumbers& numbers) {
    uint64_t* const splits = reinterpret_cast<uint64_t*>(trainer.floats(kTableAt));
    for (uint32_t i = 0; i < 4; ++i) splits[i] = numbers.small_or(100);
    proto::UpdateEntry update{};
    update.action =
        static_cast<uint8_t>(numbers.one_in(3) ? numbers.below(kUpdateActionCount)
                                               : static_cast<uint64_t>(UpdateAction::Load));
    const bool is_move = update.action == static_cast<uint8_t>(UpdateAction::Load) ||
                         update.action == static_cast<uint8_t>(UpdateAction::Fetch);
    update.count = is_move ? 0 : 1;
    update.slot = static_cast<uint8_t>(is_move && numbers.one_in(2) ? numbers.below(3) : 0);
    std::memcpy(trainer.floats(kUpdateAt), &update, sizeof(update));
    const auto tensor = static_cast<uint32_t>(
        numbers.one_in(20) ? numbers.number() : numbers.below(tensors_.size() + 1));
    const bool has_state = tensor < tensors_.size() && tensors_[tensor].state_slots != 0;
    const bool is_planned = tensor < tensors_.size() && tensors_[tensor].is_planned;
    const uint64_t step = numbers.one_in(20) ? numbers.number() : step_++;
    trainer.submit(++ticket_, tensor, step, 0, [&](proto::SubmitEntry& entry) {
      entry.offset = numbers.one_in(8) ? numbers.number() : kInputAt;
      entry.count = numbers.small_or(2000);
      if (!is_planned) entry.collective = static_cast<uint8_t>(numbers.below(kCollectiveCount));
      entry.dtype = static_cast<uint8_t>(numbers.below(kDataTypeCount));
      entry.reduction = static_cast<uint8_t>(numbers.below(2));
      entry.root = static_cast<uint32_t>(numbers.small_or(GetParam()));
      if (entry.collective == static_cast<uint8_t>(Collective::AllToAll)) entry.table = kTableAt;
      if (has_state) entry.table = numbers.one_in(10) ? numbers.number() : kUpdateAt;
    });
  }

  // Mostly of a registration that there is, and mostly all of it.
  void unregister_random(TestTrainer& trainer, ExtremeNumbers& numbers) {
    const uint32_t before = trainer.unregistered;
    trainer.refusal.clear();
    for (; given_back_ < trainer.done.size(); ++given_back_)
      trainer.release(trainer.done[given_back_].ticket);
    const std::vector<uint32_t>& firsts = trainer.registered;
    const uint64_t which = firsts.empty() ? 0 : numbers.below(firsts.size());
    const uint64_t end = which + 1 < firsts.size() ? firsts[which + 1] : tensors_.size();
    const uint64_t first = firsts.empty() ? 0 : firsts[which];
    trainer.unregister_tensors(
        static_cast<uint32_t>(numbers.one_in(10) ? numbers.number() : first),
        static_cast<uint32_t>(numbers.one_in(10) ? numbers.number() : end - first));
    settle();
    trainer.poll();
    unregistered_ += trainer.unregistered - before;
  }

  void run_trainer(uint64_t seed) {
    SCOPED_TRACE(seed);
    ExtremeNumbers numbers(seed);
    tensors_.clear();
    step_ = ticket_ = given_back_ = 0;
    const std::string name = "random" + std::to_string(seed);
    TestTrainer& trainer = open(name);
    register_random(trainer, numbers);
    for (uint32_t i = 0; i < 12 && trainer.failure.is_ok() && !trainer.was_closed; ++i) {
      submit_random(trainer, numbers);
      if (numbers.one_in(2)) unregister_random(trainer, numbers);
      settle();
      trainer.poll();
    }
    if (!trainer.failure.is_ok()) ++refused_;
    done_ += trainer.done.size();
    for (const proto::DoneEntry& done : trainer.done) {
      if (done.result_bytes != 0) (void)trainer.result(done)[done.result_bytes / 4 - 1];
    }
    close(trainer, name);
  }

  std::vector<Described> tensors_;
  uint64_t step_ = 0, ticket_ = 0, given_back_ = 0;
  uint32_t epoch_ = 0;
  size_t refused_ = 0, done_ = 0, unregistered_ = 0;
};

TEST_P(RandomTrainerTest, EndsNothingButItsJob) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    run_trainer(seed);
    if (HasFatalFailure()) return;
  }
  // b is told of a job on two nodes, and says nothing.
  refused_ += control_plane_.sent_to<proto::FailJob>(b_.id).size();
  EXPECT_GT(refused_ + done_, 100u) << "else submissions were not looked at";
  EXPECT_GT(unregistered_, 0u);
  open_job(2);
  for (auto& trainer : trainers_) {
    std::fill_n(trainer->floats(), 4, 2.0f);
    trainer->submit(1, 0, 0);
  }
  wait_for([&] { return trainers_[0]->done.size() == 1 && trainers_[1]->done.size() == 1; });
  EXPECT_EQ(trainers_[0]->result(trainers_[0]->done[0])[3], 4.0f);
}

INSTANTIATE_TEST_SUITE_P(Nodes, RandomTrainerTest, ::testing::Values(1U, 2U));

}  // namespace
}  // namespace braid
