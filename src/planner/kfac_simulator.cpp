// SPDX-License-Identifier: Apache-2.0
#include "planner/kfac_simulator.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "base/assert.h"

namespace braid {
namespace {

constexpr double kNotAveraged = std::numeric_limits<double>::infinity();

struct KfacSpan {
  double start_seconds = 0;
  double end_seconds = 0;
};

// A group of tensors, or an inverse.
struct KfacMessage {
  enum Kind : uint8_t { Factors, Gradients, Inverse };
  Kind kind = Factors;
  double ready_seconds = 0;
  double seconds = 0;  // on the link
  uint32_t begin = 0;  // of factors: the inverses that need them; of an inverse: itself
  uint32_t end = 0;
};

// What has not been sent, the message that is ready first on top; of equals the older one.
class KfacQueue {
 public:
  void add(const KfacMessage& message) {
    waiting_.push({message.ready_seconds, messages_.size()});
    messages_.push_back(message);
  }
  bool is_empty() const { return waiting_.empty(); }
  KfacMessage take() {
    const size_t index = waiting_.top().second;
    waiting_.pop();
    return messages_[index];
  }

 private:
  using Waiting = std::pair<double, size_t>;

  std::vector<KfacMessage> messages_;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

// The devices of all ranks after the passes. Ranks that own nothing are alike.
class KfacInverting {
 public:
  KfacInverting(const std::vector<PlacedItem>& items, const KfacSchedule& schedule,
                double passes_end_seconds)
      : items_(items), averaged_seconds_(items.size(), kNotAveraged), begin_(passes_end_seconds) {
    uint32_t ranks = 0;
    for (const uint32_t item : schedule.order) ranks = std::max(ranks, schedule.owners[item] + 1);
    owners_.resize(ranks + 1, {{}, 0, passes_end_seconds});  // the last one is an idle rank
    for (const uint32_t item : schedule.order) owners_[schedule.owners[item]].own.push_back(item);
    for (uint32_t item = 0; item < items.size(); ++item) {
      if (schedule.owners[item] == Placement::kEverybody) everybody_.push_back(item);
    }
  }

  void set_averaged(uint32_t item, double seconds) { averaged_seconds_[item] = seconds; }

  // Calls spread(item, seconds) for each owned inverse whose end has become known.
  template <typename Spread>
  void go_on(const Spread& spread) {
    for (Rank& rank : owners_) {
      for (; rank.done < rank.own.size(); ++rank.done) {
        const uint32_t item = rank.own[rank.done];
        if (averaged_seconds_[item] == kNotAveraged) break;
        invert(item, rank.free_seconds);
        spread(item, rank.free_seconds);
      }
    }
  }

  // What everybody inverts, when all factors are averaged. Returns when the last rank is done.
  double finish() {
    double end = begin_;
    for (Rank& rank : owners_) {
      for (const uint32_t item : everybody_) invert(item, rank.free_seconds);
      end = std::max(end, rank.free_seconds);
    }
    return end;
  }

  // When any rank computes, without overlaps.
  std::vector<KfacSpan> busy() const {
    std::vector<KfacSpan> spans = spans_;
    std::ranges::sort(spans, {}, &KfacSpan::start_seconds);
    std::vector<KfacSpan> merged;
    for (const KfacSpan& span : spans) {
      if (merged.empty() || span.start_seconds > merged.back().end_seconds) {
        merged.push_back(span);
      } else {
        merged.back().end_seconds = std::max(merged.back().end_seconds, span.end_seconds);
      }
    }
    return merged;
  }

 private:
  struct Rank {
    std::vector<uint32_t> own;
    size_t done = 0;
    double free_seconds = 0;
  };

  void invert(uint32_t item, double& free_seconds) {
    const double start = std::max(free_seconds, averaged_seconds_[item]);
    free_seconds = start + items_[item].cost_seconds;
    spans_.push_back({start, free_seconds});
  }

  const std::vector<PlacedItem>& items_;
  std::vector<double> averaged_seconds_;
  std::vector<uint32_t> everybody_;
  std::vector<Rank> owners_;
  std::vector<KfacSpan> spans_;
  double begin_;
};

// One step while it runs.
class KfacRun {
 public:
  KfacRun(const KfacStep& step, const KfacSchedule& schedule, const KfacLink& link)
      : schedule_(schedule),
        link_(link),
        made_(streams_of(step)),
        items_(inverses_of(step)),
        inverting_(items_, schedule, made_.passes_end_seconds) {
    const auto layers = static_cast<uint32_t>(items_.size() / 2);
    for (uint32_t i = 0; i < layers; ++i) inverses_.push_back(i);
    for (uint32_t i = 2 * layers; i > layers; --i) inverses_.push_back(i - 1);
  }

  KfacTimes run(const KfacStep& step) {
    add_stream(KfacStreams::FactorsA);
    add_stream(KfacStreams::FactorsG);
    add_stream(KfacStreams::Gradients);
    while (!queue_.is_empty()) send(queue_.take());
    const double end = std::max(inverting_.finish(), free_seconds_);
    KfacTimes times;
    times.passes_seconds = step.passes_seconds();
    times.factors_seconds = step.factors_seconds();
    count(times);
    times.total_seconds = end;
    return times;
  }

 private:
  void add_stream(KfacStreams::Kind kind) {
    const auto& tensors = made_.streams[kind].tensors;
    const Plan& plan = schedule_.plans[kind];
    BRAID_ASSERT(check_plan(plan, tensors.size()).is_ok(), "a simulated plan covers its stream");
    const bool is_gradient = kind == KfacStreams::Gradients;
    const auto first =
        static_cast<uint32_t>(kind == KfacStreams::FactorsG ? inverses_.size() / 2 : 0);
    for (const Plan::Group& group : plan.groups) {
      uint64_t bytes = 0;
      for (uint32_t i = group.begin; i < group.end; ++i) bytes += tensors[i].bytes;
      KfacMessage message;
      message.kind = is_gradient ? KfacMessage::Gradients : KfacMessage::Factors;
      message.ready_seconds = is_gradient || schedule_.is_pipelined
                                  ? tensors[group.end - 1].ready_seconds
                                  : made_.passes_end_seconds;
      message.seconds = link_.all_reduce.seconds(static_cast<double>(bytes));
      if (!is_gradient) {
        message.begin = first + group.begin;
        message.end = first + group.end;
        waiting_ += group.end - group.begin;
      }
      queue_.add(message);
    }
  }

  void send(const KfacMessage& message) {
    const double start = std::max(free_seconds_, message.ready_seconds);
    free_seconds_ = start + (link_.ranks > 1 ? message.seconds : 0);
    sent_.emplace_back(message.kind, KfacSpan{start, free_seconds_});
    if (message.kind != KfacMessage::Factors) return;
    waiting_ -= message.end - message.begin;
    if (!schedule_.waits_for_factors) {
      for (uint32_t i = message.begin; i < message.end; ++i) {
        inverting_.set_averaged(inverses_[i], free_seconds_);
      }
    } else if (waiting_ == 0) {
      for (const uint32_t item : inverses_) inverting_.set_averaged(item, free_seconds_);
    } else {
      return;
    }
    inverting_.go_on([this](uint32_t item, double seconds) {
      queue_.add({KfacMessage::Inverse, seconds,
                  link_.spread.seconds(static_cast<double>(items_[item].bytes)), item, item + 1});
    });
  }

  // What the link carries after the passes, where no rank computes.
  void count(KfacTimes& times) const {
    const std::vector<KfacSpan> busy = inverting_.busy();
    for (const KfacSpan& span : busy) {
      times.inverses_seconds += span.end_seconds - span.start_seconds;
    }
    for (const auto& [kind, span] : sent_) {
      const double from = std::max(span.start_seconds, made_.passes_end_seconds);
      double exposed = std::max(span.end_seconds - from, 0.0);
      for (const KfacSpan& hidden : busy) {
        exposed -= std::max(
            std::min(hidden.end_seconds, span.end_seconds) - std::max(hidden.start_seconds, from),
            0.0);
      }
      switch (kind) {
        case KfacMessage::Factors:
          times.exposed_factors_seconds += exposed;
          break;
        case KfacMessage::Gradients:
          times.exposed_gradients_seconds += exposed;
          break;
        case KfacMessage::Inverse:
          times.exposed_inverses_seconds += exposed;
          break;
      }
    }
  }

  const KfacSchedule& schedule_;
  const KfacLink& link_;
  const KfacStreams made_;
  const std::vector<PlacedItem> items_;
  std::vector<uint32_t> inverses_;  // of A and then of G, as their streams have the factors
  KfacInverting inverting_;
  KfacQueue queue_;
  std::vector<std::pair<KfacMessage::Kind, KfacSpan>> sent_;
  size_t waiting_ = 0;  // factors that are not averaged
  double free_seconds_ = 0;
};

}  // namespace

KfacLink KfacLink::of(uint32_t ranks, LinearCost all_reduce) {
  return {ranks, all_reduce, {all_reduce.startup_seconds / 2, all_reduce.seconds_per_byte / 2}};
}

KfacTimes simulate_kfac(const KfacStep& step, const KfacSchedule& schedule, const KfacLink& link) {
  return KfacRun(step, schedule, link).run(step);
}

}  // namespace braid
