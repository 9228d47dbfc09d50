// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "explain/findings.h"
#include "explain/pending.h"

namespace braid {
namespace {

constexpr size_t kLateRanksMax = 3;
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

double median_of_others(const JobView& view, size_t rank, std::vector<double> RankView::*part) {
  std::vector<double> medians;
  for (size_t i = 0; i < view.ranks.size(); ++i) {
    if (i != rank) medians.push_back(median(view.ranks[i].*part));
  }
  return median(std::move(medians));
}

std::string why_late(const JobView& view, size_t rank, double late) {
  const double backward = median(view.ranks[rank].backward);
  const double others_backward = median_of_others(view, rank, &RankView::backward);
  if (backward - others_backward >= kMostOfIt * late && others_backward > 0) {
    return fmt::format(": its backward pass takes {:.2g} times the others' ({}, theirs {})",
                       backward / others_backward, format_time(backward),
                       format_time(others_backward));
  }
  const double before =
      median(view.ranks[rank].before) - median_of_others(view, rank, &RankView::before);
  if (before < kMostOfIt * late) return {};
  return fmt::format(
      ": its first gradient comes {} after theirs, so its input, its forward pass or its "
      "optimizer takes longer",
      format_time(before));
}

// Of a job of which something waits.
std::string pending_text(const JobFacts& facts, uint64_t pending) {
  const std::vector<PendingOperation> operations = pending_operations(facts);
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
    pending += node.operations_pending;
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
        "the sum is not finite for anyone then: look at the input of rank {} in that step, and at "
        "its GPU's memory errors",
        first.rank);
  }
  findings.push_back(std::move(finding));
}

void find_late_ranks(const Evidence& evidence, Findings& findings) {
  const JobView& view = evidence.view;
  if (view.ranks.size() < 2) return;
  Findings late_ranks;
  const auto sorted = sorted_waits(view);
  for (size_t i = 0; i < view.ranks.size(); ++i) {
    const std::vector<double> late = lateness(view.ranks[i], sorted);
    const double usual = median(late);
    // Once is an accident; who is late is so in most steps.
    if (!is_worth(usual, evidence.step_seconds) || quantile(late, 0.25) < usual / 2) continue;
    const RankView& rank = view.ranks[i];
    Finding finding{Cause::LateRank, {}, {}, usual, rank.node, rank.rank};
    finding.text = fmt::format("Rank {} on {} is {} late in most steps{}", rank.rank, rank.node,
                               format_time(usual), why_late(view, i, usual));
    finding.advice = fmt::format(
        "look at what else runs on {}, at its GPU's clock and temperature, and at this rank's "
        "input",
        rank.node);
    late_ranks.push_back(std::move(finding));
  }
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
  // Of one gradient, or of several that come together, nobody knows when backward has begun.
  if (!is_worth(backward, evidence.step_seconds)) return;
  if (before < kLongBefore * backward || before < kLongBeforeShare * evidence.step_seconds) return;
  Finding finding{Cause::BeforeBackward, {}, {}, before - kForwardOfBackward * backward, {}, {}};
  finding.text = fmt::format(
      "Of a step of {}, {} pass before its first gradient, while backward takes {} after it: a "
      "forward pass takes about half as long as backward, so the trainers most likely wait for "
      "their input",
      format_time(evidence.step_seconds), format_time(before), format_time(backward));
  finding.advice =
      "give the data loader more workers or a cache; the optimizer, and micro-batches before the "
      "last one, count here, too";
  findings.push_back(std::move(finding));
}

}  // namespace braid
