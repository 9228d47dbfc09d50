// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "explain/findings.h"
#include "explain/pending.h"

namespace braid {
namespace {

constexpr size_t kLateRanksMax = 3;
// A rank that is late now and then: by this share of a step, and in this share of the steps (all
// ranks together, where each is late another time).
constexpr double kLateShare = 0.25;
constexpr double kSometimes = 0.2;
constexpr double kInTurns = 1.0 / 3;
constexpr size_t kLateStepsMin = 3;
// A rank's delay that comes from one of its parts: at least this share of it.
constexpr double kMostOfIt = 0.5;
// A job stands still when no step has ended for so many steps, and so long.
constexpr double kStalledSteps = 20;
constexpr double kStalledSeconds = 10;
// A forward pass takes about half as long as backward, an optimizer less.
constexpr double kForwardOfBackward = 0.5;
constexpr double kLongBefore = 2.5;       // times backward
constexpr double kLongBeforeShare = 0.4;  // of the step
constexpr uint64_t kRecentSteps = 64;

// By step: what all ranks waited, in order.
std::vector<std::vector<double>> sorted_waits(const JobView& view) {
  std::vector<std::vector<double>> sorted(view.steps.size());
  for (size_t step = 0; step < sorted.size(); ++step) {
    sorted[step].reserve(view.ranks.size());
    for (const RankView& rank : view.ranks) sorted[step].push_back(rank.wait[step]);
    std::ranges::sort(sorted[step]);
  }
  return sorted;
}

// By step: how much later than most others the rank came. `sorted`: of the same view, which has
// two ranks at least.
std::vector<double> lateness(const RankView& rank, const std::vector<std::vector<double>>& sorted) {
  std::vector<double> late;
  late.reserve(sorted.size());
  for (size_t step = 0; step < sorted.size(); ++step) {
    const std::vector<double>& waits = sorted[step];
    const double own = rank.wait[step];
    const size_t place = static_cast<size_t>(std::ranges::lower_bound(waits, own) - waits.begin());
    // The median of the others: as if it were not among them.
    const size_t middle = (waits.size() - 2) / 2;
    late.push_back(waits[middle < place ? middle : middle + 1] - own);
  }
  return late;
}

// The places of the steps in which it is late by much of a step.
std::vector<size_t> late_steps(const std::vector<double>& late, double step_seconds) {
  std::vector<size_t> steps;
  for (size_t i = 0; i < late.size(); ++i) {
    if (late[i] >= kWorthSeconds && late[i] >= kLateShare * step_seconds) steps.push_back(i);
  }
  return steps;
}

bool is_often(size_t late, double share, size_t steps) {
  return late >= kLateStepsMin && static_cast<double>(late) >= share * static_cast<double>(steps);
}

std::vector<size_t> all_places(size_t count) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), size_t{0});
  return places;
}

double median_at(const std::vector<double>& values, const std::vector<size_t>& places) {
  std::vector<double> chosen;
  chosen.reserve(places.size());
  for (const size_t place : places) chosen.push_back(values[place]);
  return median(std::move(chosen));
}

double sum_at(const std::vector<double>& values, const std::vector<size_t>& places) {
  double sum = 0;
  for (const size_t place : places) sum += values[place];
  return sum;
}

double median_of_others(const JobView& view, size_t rank, std::vector<double> RankView::*part,
                        const std::vector<size_t>& steps) {
  std::vector<double> medians;
  for (size_t i = 0; i < view.ranks.size(); ++i) {
    if (i != rank) medians.push_back(median_at(view.ranks[i].*part, steps));
  }
  return median(std::move(medians));
}

// `steps`: in which it is late, by `late`.
std::string why_late(const JobView& view, size_t rank, double late,
                     const std::vector<size_t>& steps) {
  const double backward = median_at(view.ranks[rank].backward, steps);
  const double others_backward = median_of_others(view, rank, &RankView::backward, steps);
  if (backward - others_backward >= kMostOfIt * late && others_backward > 0) {
    return fmt::format(": its backward pass takes {:.2g} times the others' ({}, theirs {})",
                       backward / others_backward, format_time(backward),
                       format_time(others_backward));
  }
  const double before = median_at(view.ranks[rank].before, steps) -
                        median_of_others(view, rank, &RankView::before, steps);
  if (before < kMostOfIt * late) return {};
  return fmt::format(
      ": its first gradient comes {} after theirs, so its input, its forward pass or its "
      "optimizer takes longer",
      format_time(before));
}

Finding usually_late(const JobView& view, size_t place, double usual) {
  const RankView& rank = view.ranks[place];
  Finding finding{Cause::LateRank, {}, {}, usual, rank.node, rank.rank};
  finding.text =
      fmt::format("Rank {} on {} is {} late in most steps{}", rank.rank, rank.node,
                  format_time(usual), why_late(view, place, usual, all_places(view.steps.size())));
  finding.advice = fmt::format(
      "look at what else runs on {}, at its GPU's clock and temperature, and at this rank's input",
      rank.node);
  return finding;
}

Finding sometimes_late(const JobView& view, size_t place, const std::vector<double>& late,
                       const std::vector<size_t>& steps) {
  const RankView& rank = view.ranks[place];
  const double usual = median_at(late, steps);
  const double cost = sum_at(late, steps) / static_cast<double>(late.size());
  Finding finding{Cause::LateRank, {}, {}, cost, rank.node, rank.rank};
  finding.text = fmt::format("Rank {} on {} is {} late in {} of {} steps{}", rank.rank, rank.node,
                             format_time(usual), steps.size(), late.size(),
                             why_late(view, place, usual, steps));
  finding.advice = fmt::format(
      "look at what this rank does only now and then (a log, a checkpoint, files that its data "
      "loader waits for), and at what else runs on {}",
      rank.node);
  return finding;
}

// `late_steps_of`: by rank.
void add_late_in_turns(const Evidence& evidence,
                       const std::vector<std::vector<double>>& lateness_of,
                       const std::vector<std::vector<size_t>>& late_steps_of, Findings& findings) {
  const JobView& view = evidence.view;
  const size_t steps = view.steps.size();
  std::vector<double> worst(steps, 0);
  std::vector<std::pair<size_t, uint32_t>> ranks;  // in how many steps, which
  for (size_t i = 0; i < view.ranks.size(); ++i) {
    for (const size_t step : late_steps_of[i])
      worst[step] = std::max(worst[step], lateness_of[i][step]);
    if (!late_steps_of[i].empty()) ranks.push_back({late_steps_of[i].size(), view.ranks[i].rank});
  }
  const std::vector<size_t> late = late_steps(worst, evidence.step_seconds);
  if (!is_often(late.size(), kInTurns, steps)) return;
  std::ranges::stable_sort(ranks, std::ranges::greater(), &std::pair<size_t, uint32_t>::first);
  std::vector<std::string> named;
  for (const auto& [times, rank] : ranks) {
    if (named.size() == kLateRanksMax) break;
    named.push_back(fmt::format("rank {} in {}", rank, times));
  }
  Finding finding{
      Cause::LateRank, {}, {}, sum_at(worst, late) / static_cast<double>(steps), {}, {}};
  finding.text =
      fmt::format("Ranks are late in turns: in {} of {} steps one of them is, by {} ({}{})",
                  late.size(), steps, format_time(median_at(worst, late)), fmt::join(named, ", "),
                  ranks.size() > named.size() ? ", …" : "");
  finding.advice =
      "what takes a rank longer now and then: inputs of different lengths, a data loader that "
      "falls behind, garbage collection";
  findings.push_back(std::move(finding));
}

// What a job with pending operations waits for.
std::string pending_text(const JobFacts& facts, uint64_t pending) {
  const std::vector<PendingOperation> operations = pending_operations(facts);
  const std::vector<WaitingMessage> messages = waiting_messages(facts);
  if (operations.empty() && !messages.empty()) {
    return fmt::format("the {} has waited for {}", describe_message(messages.front()),
                       format_time(to_seconds(messages.front().since_ns)));
  }
  if (operations.empty()) {
    return fmt::format("{} operations wait, so some rank has not submitted what the others have",
                       pending);
  }
  const PendingOperation& oldest = operations.front();
  const std::string what = fmt::format("the {} has waited for {}, ", describe_operation(oldest),
                                       format_time(to_seconds(oldest.since_ns)));
  if (!oldest.missing.empty())
    return what +
           fmt::format("because {} not submitted it", describe_missing_ranks(oldest.missing));
  return what + "and all ranks have submitted it: look at the flows and nodes";
}

}  // namespace

void find_stall(const Evidence& evidence, Findings& findings) {
  double ago = HUGE_VAL;
  uint64_t pending = 0;
  for (const NodeFacts& node : evidence.after.nodes) {
    ago = std::min(ago, to_seconds(node.last_step_ago_ns));
    pending += node.operations_pending + node.messages_pending;
  }
  if (ago < kStalledSeconds || ago < kStalledSteps * evidence.step_seconds) return;
  Finding finding{Cause::Stalled, {}, {}, ago, {}, {}};
  if (pending == 0) {
    finding.text = fmt::format(
        "No step has ended for {}, where one took {} before, and no rank has submitted anything "
        "since: the trainers do something else (evaluation, a checkpoint) or hang",
        format_time(ago), format_time(evidence.step_seconds));
    finding.advice = "py-spy dump --pid shows what a trainer does";
  } else {
    finding.text =
        fmt::format("No step has ended for {}, where one took {} before: {}", format_time(ago),
                    format_time(evidence.step_seconds), pending_text(evidence.after, pending));
    finding.advice =
        "the job ends with the names of the missing ranks when the operation's deadline has "
        "passed (collective.operation_timeout_ms)";
  }
  findings.push_back(std::move(finding));
}

void find_not_finite(const Evidence& evidence, Findings& findings) {
  struct Source {
    const NodeFacts::NotFinite* what;
    const std::string* node;
  };
  const uint64_t latest = evidence.view.steps.back();
  std::vector<Source> sources;
  for (const NodeFacts& node : evidence.after.nodes) {
    for (const NodeFacts::NotFinite& what : node.not_finite) {
      if (what.steps != 0 && what.last_step + kRecentSteps >= latest)
        sources.push_back({&what, &node.node});
    }
  }
  if (sources.empty()) return;
  std::ranges::stable_sort(sources, {}, [](const Source& one) { return one.what->first_step; });
  const NodeFacts::NotFinite& first = *sources.front().what;
  const auto together = std::ranges::count_if(
      sources, [&first](const Source& one) { return one.what->first_step == first.first_step; });
  const bool is_everywhere =
      static_cast<size_t>(together) == evidence.view.ranks.size() && evidence.view.ranks.size() > 1;
  Finding finding{Cause::NotFinite, {}, {}, 0, {}, {}};
  if (is_everywhere) {
    finding.text = fmt::format(
        "All ranks give gradients that are not finite, from step {} on ('{}' first), in {} steps",
        first.first_step, first.first_tensor, first.steps);
    finding.advice = "all at once: look at the learning rate, and at the loss's scale";
  } else {
    const std::string& node = *sources.front().node;
    finding.node = node;
    finding.rank = first.rank;
    finding.text = fmt::format(
        "Rank {} on {} was the first to give a gradient that is not finite: '{}' in step {}; it "
        "did in {} steps, and {} other ranks did, too",
        first.rank, node, first.first_tensor, first.first_step, first.steps, sources.size() - 1);
    finding.advice = fmt::format(
        "then no rank's sum is finite: look at the input of rank {} in that step, and at its GPU's "
        "memory errors",
        first.rank);
  }
  findings.push_back(std::move(finding));
}

void find_late_ranks(const Evidence& evidence, Findings& findings) {
  const JobView& view = evidence.view;
  if (view.ranks.size() < 2) return;
  Findings late_ranks, sometimes;
  std::vector<std::vector<double>> lateness_of;
  std::vector<std::vector<size_t>> late_steps_of;
  const auto sorted = sorted_waits(view);
  for (size_t i = 0; i < view.ranks.size(); ++i) {
    const std::vector<double>& late = lateness_of.emplace_back(lateness(view.ranks[i], sorted));
    const std::vector<size_t>& steps =
        late_steps_of.emplace_back(late_steps(late, evidence.step_seconds));
    const double usual = median(late);
    // Once is an accident.
    if (is_worth(usual, evidence.step_seconds) && quantile(late, 0.25) >= usual / 2) {
      late_ranks.push_back(usually_late(view, i, usual));
    } else if (is_often(steps.size(), kSometimes, late.size())) {
      sometimes.push_back(sometimes_late(view, i, late, steps));
    }
  }
  // Where most ranks are, none of them is to blame.
  if (2 * sometimes.size() <= view.ranks.size())
    late_ranks.insert(late_ranks.end(), sometimes.begin(), sometimes.end());
  if (late_ranks.empty()) add_late_in_turns(evidence, lateness_of, late_steps_of, late_ranks);
  std::ranges::stable_sort(late_ranks, std::ranges::greater(), &Finding::seconds_per_step);
  if (late_ranks.size() > kLateRanksMax) late_ranks.resize(kLateRanksMax);
  findings.insert(findings.end(), late_ranks.begin(), late_ranks.end());
}

void find_time_before_backward(const Evidence& evidence, Findings& findings) {
  std::vector<double> befores, backwards;
  for (const RankView& rank : evidence.view.ranks) {
    befores.push_back(median(rank.before));
    backwards.push_back(median(rank.backward));
  }
  const double before = median(befores), backward = median(backwards);
  // With one gradient, or several that come together, nobody knows when backward has begun.
  if (!is_worth(backward, evidence.step_seconds)) return;
  if (before < kLongBefore * backward || before < kLongBeforeShare * evidence.step_seconds) return;
  Finding finding{Cause::BeforeBackward, {}, {}, before - kForwardOfBackward * backward, {}, {}};
  finding.text = fmt::format(
      "A step takes {}, {} pass before its first gradient, and backward takes {} after it: a "
      "forward pass takes about half as long as backward, so the trainers most likely wait for "
      "their input",
      format_time(evidence.step_seconds), format_time(before), format_time(backward));
  finding.advice =
      "give the data loader more workers or a cache; the optimizer, and micro-batches before the "
      "last one, count here, too";
  findings.push_back(std::move(finding));
}

}  // namespace braid
