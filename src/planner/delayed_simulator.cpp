// SPDX-License-Identifier: Apache-2.0
#include "planner/delayed_simulator.h"

#include <algorithm>
#include <cmath>

#include "planner/channels.h"
#include "planner/sharded_step.h"

namespace braid {
namespace {

constexpr uint32_t kRepeatsMin = 3;
constexpr uint32_t kCountedPeriodsMin = 2 * kRepeatsMin;
constexpr double kSameShare = 1e-9;  // of a step: times that differ by less are the same

// The network over many steps. Rounds are numbered as they begin, in order of time.
class RoundPlayer {
 public:
  explicit RoundPlayer(std::span<const double> slowdown) : channels_(slowdown) {}

  size_t begin(const UpdateRound& round, double seconds) {
    const size_t number = rounds_.size();
    rounds_.push_back({round.units.size(), seconds, seconds});
    if (round.units.empty()) return number;
    channels_.run_until(seconds, ends_);
    if (channels_.busy() == 0 && channels_.last_end_seconds() <= seconds) {
      earlier_busy_seconds_ += channels_.last_end_seconds() - busy_since_;
      busy_since_ = seconds;
    }
    for (const CostModel::Phases& phases : round.units) {
      channels_.start(static_cast<uint32_t>(number), seconds, phases, ends_);
    }
    return number;
  }

  double begin_of(size_t round) const { return rounds_[round].begin_seconds; }

  // No round may begin before that any more.
  double end_of(size_t round) {
    take_ends();
    while (rounds_[round].units_left > 0 && channels_.go_on(ends_)) take_ends();
    return rounds_[round].end_seconds;
  }

  // How long something has been under way, up to then. No round may begin before that any more, and
  // none has begun after it.
  double busy_seconds(double until) {
    channels_.run_until(until, ends_);
    const double busy_until =
        channels_.busy() > 0 ? until : std::min(until, channels_.last_end_seconds());
    return earlier_busy_seconds_ + busy_until - busy_since_;
  }

 private:
  struct Begun {
    size_t units_left = 0;
    double begin_seconds = 0;
    double end_seconds = 0;  // of the units that have ended
  };

  void take_ends() {
    for (const Channels::End& end : ends_) {
      Begun& round = rounds_[end.unit];
      --round.units_left;
      round.end_seconds = std::max(round.end_seconds, end.seconds);
    }
    ends_.clear();
  }

  Channels channels_;
  std::vector<Channels::End> ends_;
  std::vector<Begun> rounds_;
  double busy_since_ = 0;
  double earlier_busy_seconds_ = 0;  // before the network was last idle
};

// Step after step, until periods repeat each other.
class LongRun {
 public:
  LongRun(const UpdateRounds& rounds, double compute_seconds, std::span<const double> slowdown)
      : rounds_(rounds), compute_seconds_(compute_seconds), network_(slowdown) {}

  struct Means {
    double exposed_seconds = 0;
    double communication_seconds = 0;
  };
  Means run(uint32_t periods_max) {
    std::vector<Mark> marks(1);
    uint32_t repeats = 0;
    while (marks.size() <= periods_max && repeats < kRepeatsMin) {
      std::vector<double> times = run_period();
      repeats = is_same(times, last_times_) ? repeats + 1 : 0;
      last_times_ = std::move(times);
      marks.push_back({waited_seconds_, network_.busy_seconds(now_)});
    }
    const size_t last = marks.size() - 1;
    const size_t first = repeats == kRepeatsMin ? last - 1 : last / 2;
    const auto steps = static_cast<double>((last - first) * rounds_.kind_of_step.size());
    return {(marks[last].waited_seconds - marks[first].waited_seconds) / steps,
            (marks[last].busy_seconds - marks[first].busy_seconds) / steps};
  }

 private:
  struct Mark {
    double waited_seconds = 0;
    double busy_seconds = 0;
  };

  // Returns how long its steps waited, and what the rounds took that they waited for.
  std::vector<double> run_period() {
    std::vector<double> times;
    for (const std::optional<uint32_t>& kind : rounds_.kind_of_step) {
      const double made = now_ + compute_seconds_;
      now_ = made;
      if (rounds_.waits_first) now_ = std::max(now_, end_of_due_round(times));
      round_of_step_.emplace_back();
      if (kind) round_of_step_.back() = network_.begin(rounds_.kinds[*kind], now_);
      if (!rounds_.waits_first) now_ = std::max(now_, end_of_due_round(times));
      times.push_back(now_ - made);
      waited_seconds_ += now_ - made;
    }
    return times;
  }

  // The end of the round that this step's end waits for; 0 if there is none.
  double end_of_due_round(std::vector<double>& times) {
    const size_t later = rounds_.delay + (rounds_.waits_first ? 0 : 1);
    if (round_of_step_.size() < later) return 0;
    const std::optional<size_t>& round = round_of_step_[round_of_step_.size() - later];
    if (!round) return 0;
    const double end = network_.end_of(*round);
    times.push_back(end - network_.begin_of(*round));
    return end;
  }

  bool is_same(const std::vector<double>& one, const std::vector<double>& other) const {
    const double step = now_ / static_cast<double>(round_of_step_.size());
    return std::ranges::equal(
        one, other, [step](double a, double b) { return std::abs(a - b) <= kSameShare * step; });
  }

  const UpdateRounds& rounds_;
  const double compute_seconds_;
  RoundPlayer network_;
  double now_ = 0;
  double waited_seconds_ = 0;                         // by all steps so far
  std::vector<std::optional<size_t>> round_of_step_;  // of each step so far
  std::vector<double> last_times_;
};

// In which some unit is under way.
double busy_seconds_of(const Timeline& timeline) {
  double busy = 0;
  double until = 0;
  for (const Timeline::Unit& unit : timeline.units) {
    busy += std::max(unit.end_seconds - std::max(unit.start_seconds, until), 0.0);
    until = std::max(until, unit.end_seconds);
  }
  return busy;
}

UpdateTimes times_of(const Timeline& timeline, const Workload& workload, const Plan& plan) {
  UpdateTimes times;
  times.iteration_seconds = timeline.iteration_seconds;
  times.compute_seconds = workload.forward_seconds + timeline.backward_seconds;
  times.communication_seconds = busy_seconds_of(timeline);
  times.exposed_seconds = timeline.exposed_seconds;
  times.groups = plan.groups.size();
  return times;
}

uint64_t units_of_period(const UpdateRounds& rounds) {
  uint64_t units = 0;
  for (const std::optional<uint32_t>& kind : rounds.kind_of_step) {
    if (kind) units += rounds.kinds[*kind].units.size();
  }
  return units;
}

double wire_share_of(const UpdateRounds& rounds, const Workload& workload) {
  const double synchronous =
      static_cast<double>(workload.bytes()) * static_cast<double>(rounds.kind_of_step.size());
  if (synchronous == 0) return 1;
  double bytes = 0;
  for (const std::optional<uint32_t>& kind : rounds.kind_of_step) {
    if (kind) bytes += rounds.kinds[*kind].wire_bytes;
  }
  return bytes / synchronous;
}

Result<UpdateTimes> simulate_rounds(const Workload& workload, const CostModel& cost,
                                    const Planner& planner, const UpdateMethod& method,
                                    const UpdateOptions& options) {
  const auto rounds = make_update_rounds(workload, cost, planner, method, options);
  if (!rounds) return rounds.status();
  const uint64_t units = units_of_period(*rounds);
  if (units > kUpdateUnitsMax / kCountedPeriodsMin) {
    return make_status(StatusCode::InvalidArgument,
                       "update method '{}': planner {} makes {} units in a period, too many to "
                       "simulate; right are up to {}: a shorter period, or a planner that merges",
                       to_string(method), planner.name(), units,
                       kUpdateUnitsMax / kCountedPeriodsMin);
  }
  const auto periods = static_cast<uint32_t>(
      std::min<uint64_t>(kUpdatePeriodsMax, kUpdateUnitsMax / std::max<uint64_t>(units, 1)));
  const std::vector<double> ready = slowest_ready_seconds(workload, options.simulator);
  const std::vector<double> slowdown = slowdowns(cost, options.simulator.streams, units);
  UpdateTimes times;
  times.compute_seconds = workload.forward_seconds + (ready.empty() ? 0 : ready.back());
  const auto means = LongRun(*rounds, times.compute_seconds, slowdown).run(periods);
  times.iteration_seconds = times.compute_seconds + means.exposed_seconds;
  times.communication_seconds = means.communication_seconds;
  times.exposed_seconds = means.exposed_seconds;
  times.wire_share = wire_share_of(*rounds, workload);
  times.groups = rounds->groups;
  return times;
}

}  // namespace

double UpdateTimes::hidden_share() const {
  const double at_best = std::min(communication_seconds, compute_seconds);
  if (at_best <= 0) return 1;
  return std::clamp((communication_seconds - exposed_seconds) / at_best, 0.0, 1.0);
}

Result<UpdateTimes> simulate_update(const Workload& workload, const CostModel& cost,
                                    const Planner& planner, const UpdateMethod& method,
                                    const UpdateOptions& options) {
  switch (method.kind) {
    case UpdateKind::Sync: {
      const Plan plan = planner.plan(workload, cost, options.planning);
      return times_of(simulate(workload, plan, cost, options.simulator), workload, plan);
    }
    case UpdateKind::Sharded: {
      const Plan plan = planner.plan(workload, cost, options.planning);
      return times_of(simulate_sharded(workload, plan, cost, options.simulator), workload, plan);
    }
    case UpdateKind::OdSgd:
    case UpdateKind::SsdSgd:
    case UpdateKind::CdSgd:
    case UpdateKind::Acco:
    case UpdateKind::DiLoCo:
      break;
  }
  return simulate_rounds(workload, cost, planner, method, options);
}

}  // namespace braid
