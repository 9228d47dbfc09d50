// SPDX-License-Identifier: Apache-2.0
#include "planner/kfac_simulator.h"

#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "planner/kfac_methods.h"
#include "tests/unit/planner/kfac_instances.h"

namespace braid {
namespace {

// A startup takes 1 and a byte 1; to spread takes half of that.
const KfacLink kTinyLink = KfacLink::of(2, {1, 1});

KfacTimes tiny(std::string_view method) {
  return simulate_kfac_method(tiny_kfac_step(), kTinyLink, method).value().times;
}

std::vector<double> parts(const KfacTimes& times) {
  return {times.passes_seconds,
          times.factors_seconds,
          times.exposed_factors_seconds,
          times.exposed_gradients_seconds,
          times.inverses_seconds,
          times.exposed_inverses_seconds,
          times.total_seconds};
}

// The link: the second layer's gradient 5 to 7, the first one's 8 to 11, A 11 to 16, G 16 to 19.
// All four inverses take 10.
TEST(KfacSimulatorTest, DKfacByHand) {
  EXPECT_EQ(parts(tiny("d-kfac")), (std::vector<double>{5, 4, 8, 2, 10, 0, 29}));
}

// From 19 on rank 0 inverts A of the first layer for 4 and its G for 2, rank 1 the second layer's
// for 2 and 2. The link spreads A of the second layer from 21 to 22, then from 23 on its G for 1
// and A of the first for 2, and from 26 to 27 G of the first.
TEST(KfacSimulatorTest, MpdKfacByHand) {
  EXPECT_EQ(parts(tiny("mpd-kfac")), (std::vector<double>{5, 4, 8, 2, 6, 2, 27}));
}

// The link: A 1 to 5 and 5 to 7, a gradient 7 to 9, G 9 to 11, a gradient 11 to 14, G 14 to 16.
TEST(KfacSimulatorTest, PipeliningByHand) {
  EXPECT_EQ(parts(tiny("pipeline")), (std::vector<double>{5, 4, 4, 3, 10, 0, 26}));
}

TEST(KfacSimulatorTest, OneRankSendsNothing) {
  const KfacLink link = KfacLink::of(1, {1, 1});
  for (const KfacMethod& method : kfac_methods()) {
    const auto result = simulate_kfac_method(tiny_kfac_step(), link, method.name);
    EXPECT_EQ(parts(result->times), (std::vector<double>{5, 4, 0, 0, 10, 0, 19})) << method.name;
  }
}

// The same step on a clock that goes on by 1: an idle device or link takes what comes next. It
// shares nothing with the simulator but the schedule, and wants whole times from 1.
class TickedStep {
 public:
  TickedStep(const KfacStep& step, const KfacSchedule& schedule, const KfacLink& link)
      : step_(step), schedule_(schedule), link_(link) {
    for (size_t i = 0; i < step.layers.size(); ++i) {
      if (step.layers[i].a) with_factors_.push_back(i);
    }
    is_averaged_.resize(2 * with_factors_.size());
    begin_passes();
    begin_inverting();
  }

  double run() {
    for (now_ = 0; !is_done(); ++now_) {
      // What became ready now, in the order of streams, groups and inverses.
      while (!passes_.empty() && passes_.front().left == 0) make(passes_.front());
      is_passed_ = passes_.empty();
      finish_message();
      add_ready_groups();
      bool is_new = true;
      while (is_new) is_new = step_ranks();
      begin_message();
      if (!passes_.empty()) --passes_.front().left;
      for (Rank& rank : ranks_) rank.left -= rank.left > 0 ? 1 : 0;
      if (is_sending_) --message_.left;
    }
    return now_ - 1;
  }

 private:
  struct Part {
    int left = 0;
    int stream = -1;  // of what is there when it ends
  };
  struct Rank {
    std::vector<uint32_t> own;
    std::vector<uint32_t> others;  // of everybody
    int left = -1;                 // -1: idle
    uint32_t item = 0;
  };
  struct Message {
    int left = 0;
    int ready = 0;
    size_t stream = 3;  // 3: inverses
    std::vector<uint32_t> items;
  };

  void begin_passes() {
    for (const KfacStep::Layer& layer : step_.layers) {
      if (layer.a) passes_.push_back({static_cast<int>(layer.a->compute_seconds), 0});
      passes_.push_back({static_cast<int>(layer.forward_seconds), -1});
    }
    for (size_t i = step_.layers.size(); i-- > 0;) {
      const KfacStep::Layer& layer = step_.layers[i];
      const bool has_gradient = layer.gradient_bytes > 0;
      passes_.push_back({static_cast<int>(layer.backward_seconds), has_gradient ? 2 : -1});
      if (layer.g) passes_.push_back({static_cast<int>(layer.g->compute_seconds), 1});
    }
  }

  void begin_inverting() {
    ranks_.resize(link_.ranks);
    for (const uint32_t item : schedule_.order) ranks_[schedule_.owners[item]].own.push_back(item);
    for (uint32_t item = 0; item < schedule_.owners.size(); ++item) {
      if (schedule_.owners[item] != Placement::kEverybody) continue;
      for (Rank& rank : ranks_) rank.others.push_back(item);
    }
  }

  const KfacStep::Factor& factor(uint32_t item) const {
    const size_t count = with_factors_.size();
    const KfacStep::Layer& layer = step_.layers[with_factors_[item % count]];
    return item < count ? *layer.a : *layer.g;
  }
  int triangle(uint32_t item) const {
    const auto size = static_cast<int>(factor(item).dimension);
    return size * (size + 1) / 2;
  }
  // The item of a place in a stream of factors.
  uint32_t item_of(size_t stream, uint32_t place) const {
    const auto count = static_cast<uint32_t>(with_factors_.size());
    return stream == 0 ? place : 2 * count - 1 - place;
  }

  void make(const Part& part) {
    if (part.stream >= 0) ++made_[static_cast<size_t>(part.stream)];
    passes_.erase(passes_.begin());
  }

  void add_ready_groups() {
    for (size_t stream = 0; stream < 3; ++stream) {
      const auto& groups = schedule_.plans[stream].groups;
      const bool waits = stream < 2 && !schedule_.is_pipelined && !is_passed_;
      for (; !waits && queued_[stream] < groups.size(); ++queued_[stream]) {
        const Plan::Group& group = groups[queued_[stream]];
        if (group.end > made_[stream]) break;
        messages_.push_back(message_of(stream, group));
      }
    }
  }

  Message message_of(size_t stream, const Plan::Group& group) const {
    Message message{0, now_, stream, {}};
    int bytes = 0;
    for (uint32_t place = group.begin; place < group.end; ++place) {
      if (stream == 2) {
        bytes += gradient_bytes(place);
      } else {
        message.items.push_back(item_of(stream, place));
        bytes += triangle(message.items.back());
      }
    }
    message.left = static_cast<int>(link_.all_reduce.seconds(bytes));
    return message;
  }

  int gradient_bytes(uint32_t place) const {
    std::vector<int> bytes;
    for (size_t i = step_.layers.size(); i-- > 0;) {
      if (const uint64_t one = step_.layers[i].gradient_bytes; one > 0) {
        bytes.push_back(static_cast<int>(one));
      }
    }
    return bytes[place];
  }

  void finish_message() {
    if (!is_sending_ || message_.left > 0) return;
    is_sending_ = false;
    if (message_.stream < 2) {
      for (const uint32_t item : message_.items) is_averaged_[item] = true;
    }
  }

  bool may_invert(uint32_t item) const {
    if (!is_passed_) return false;
    if (schedule_.waits_for_factors) {
      return std::ranges::all_of(is_averaged_, [](bool is_there) { return is_there; });
    }
    return is_averaged_[item];
  }

  // False: nothing happened.
  bool step_ranks() {
    bool is_new = false;
    for (Rank& rank : ranks_) {
      if (rank.left == 0) {
        rank.left = -1;
        is_new = true;
        if (schedule_.owners[rank.item] != Placement::kEverybody) spread(rank.item);
      }
      if (rank.left > 0) continue;
      std::vector<uint32_t>& list = rank.own.empty() ? rank.others : rank.own;
      if (list.empty() || !may_invert(list.front())) continue;
      rank.item = list.front();
      rank.left = static_cast<int>(factor(rank.item).invert_seconds);
      list.erase(list.begin());
      is_new = true;
    }
    return is_new;
  }

  void spread(uint32_t item) {
    messages_.push_back({static_cast<int>(link_.spread.seconds(triangle(item))), now_, 3, {item}});
  }

  void begin_message() {
    if (is_sending_ || messages_.empty()) return;
    const auto first = std::ranges::min_element(messages_, [](const Message& a, const Message& b) {
      return a.ready != b.ready ? a.ready < b.ready : a.stream < b.stream;
    });
    message_ = *first;
    messages_.erase(first);
    is_sending_ = true;
  }

  bool is_done() const {
    const auto is_idle = [](const Rank& rank) {
      return rank.left < 0 && rank.own.empty() && rank.others.empty();
    };
    return is_passed_ && !is_sending_ && messages_.empty() && std::ranges::all_of(ranks_, is_idle);
  }

  const KfacStep& step_;
  const KfacSchedule& schedule_;
  const KfacLink& link_;
  std::vector<size_t> with_factors_;
  std::vector<bool> is_averaged_;
  std::vector<Part> passes_;
  std::array<uint32_t, 3> made_{};
  std::array<size_t, 3> queued_{};
  std::vector<Rank> ranks_;
  std::vector<Message> messages_;  // that are ready
  Message message_;                // on the link
  bool is_sending_ = false;
  bool is_passed_ = false;
  int now_ = 0;
};

KfacSchedule random_schedule(Instances& instances, const KfacStep& step, uint32_t ranks) {
  KfacSchedule schedule;
  const KfacStreams made = streams_of(step);
  for (size_t kind = 0; kind < KfacStreams::kKinds; ++kind) {
    if (made.streams[kind].tensors.empty()) continue;
    schedule.plans[kind] = instances.plan(made.streams[kind], 1);
  }
  schedule.is_pipelined = instances.below(2) == 0;
  schedule.waits_for_factors = instances.below(2) == 0;
  for (uint32_t item = 0; item < inverses_of(step).size(); ++item) {
    const auto owner = static_cast<uint32_t>(instances.below(ranks + 1));
    schedule.owners.push_back(owner == ranks ? Placement::kEverybody : owner);
    if (owner < ranks) {
      const auto place = instances.below(schedule.order.size() + 1);
      schedule.order.insert(schedule.order.begin() + static_cast<std::ptrdiff_t>(place), item);
    }
  }
  return schedule;
}

TEST(KfacSimulatorTest, EndsWhenAClockOfWholeNumbersDoes) {
  Instances instances(71);
  for (int i = 0; i < 5000; ++i) {
    const KfacStep step = whole_kfac_step(instances, 6);
    KfacLink link;
    link.ranks = static_cast<uint32_t>(2 + instances.below(4));
    link.all_reduce = {static_cast<double>(1 + instances.below(5)),
                       static_cast<double>(instances.below(4))};
    link.spread = {static_cast<double>(1 + instances.below(3)),
                   static_cast<double>(instances.below(3))};
    const KfacSchedule schedule = random_schedule(instances, step, link.ranks);
    const KfacTimes times = simulate_kfac(step, schedule, link);
    ASSERT_EQ(times.total_seconds, TickedStep(step, schedule, link).run()) << "instance " << i;
    ASSERT_EQ(times.total_seconds, times.passes_seconds + times.factors_seconds +
                                       times.exposed_factors_seconds +
                                       times.exposed_gradients_seconds + times.inverses_seconds +
                                       times.exposed_inverses_seconds)
        << "instance " << i;
  }
}

}  // namespace
}  // namespace braid
