// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "explain/findings.h"

namespace braid {
namespace {

// What was told longer ago says nothing of the latest steps: so many intervals between updates, and
// so long.
constexpr double kOldIntervals = 4;
constexpr double kOldSeconds = 60;
// The slowest rank needs so many times what no placement could beat.
constexpr double kOffBy = 1.2;
// It needs so many times what it was to need.
constexpr double kSlowerThanPlanned = 1.5;
constexpr size_t kItemsNamed = 2;

// One rank's part of a work, and the node that it is on.
struct RankWork {
  const NodeFacts::Work* told = nullptr;
  const std::string* node = nullptr;

  bool is_recent() const {
    return to_seconds(told->told_ago_ns) <=
           std::max(kOldSeconds, kOldIntervals * told->interval_seconds);
  }
};

// All ranks' parts of one work; the slowest rank comes first.
struct WorkView {
  std::string work;
  std::vector<RankWork> ranks;

  const NodeFacts::Work& slowest() const { return *ranks.front().told; }
  double mean_seconds() const {
    double sum = 0;
    for (const RankWork& rank : ranks) sum += rank.told->seconds;
    return sum / static_cast<double>(ranks.size());
  }
  // However items are placed, some rank needs as much: the mean, or the largest item.
  double least_seconds() const {
    double least = mean_seconds();
    for (const RankWork& rank : ranks) {
      for (const NodeFacts::Work::Item& item : rank.told->items) {
        const bool is_known = item.least_seconds > 0;
        least =
            std::max(least, is_known ? std::min(item.least_seconds, item.seconds) : item.seconds);
      }
    }
    return least;
  }
  double median_of_others(double NodeFacts::Work::*number) const {
    std::vector<double> numbers;
    for (size_t i = 1; i < ranks.size(); ++i) numbers.push_back(ranks[i].told->*number);
    return median(std::move(numbers));
  }
  // That the rank waits longest which waits for the slowest one.
  double wait_seconds() const {
    double longest = 0;
    for (size_t i = 1; i < ranks.size(); ++i)
      longest = std::max(longest, ranks[i].told->wait_seconds);
    return longest;
  }
};

// By the work's name. A work of which a rank has told nothing is left out: that rank's part is not
// known.
std::vector<WorkView> works_of(const Evidence& evidence) {
  std::map<std::string, WorkView> works;
  for (const NodeFacts& node : evidence.after.nodes) {
    for (const NodeFacts::Work& told : node.work) {
      const RankWork rank{&told, &node.node};
      if (rank.is_recent()) works[told.work].ranks.push_back(rank);
    }
  }
  std::vector<WorkView> complete;
  for (auto& [name, work] : works) {
    if (work.ranks.size() < 2 || work.ranks.size() != evidence.view.ranks.size()) continue;
    work.work = name;
    std::ranges::stable_sort(work.ranks, std::ranges::greater(),
                             [](const RankWork& rank) { return rank.told->seconds; });
    complete.push_back(std::move(work));
  }
  return complete;
}

// "layer4.A, layer4.G and 3 more"
std::string items_text(const NodeFacts::Work& told) {
  std::vector<std::string> named;
  for (const NodeFacts::Work::Item& item : told.items) {
    if (named.size() == kItemsNamed) break;
    named.push_back(item.name);
  }
  const uint64_t more = told.items.size() - named.size() + told.items_more;
  if (more != 0) return fmt::format("{} and {} more", fmt::join(named, ", "), more);
  if (named.size() < 2) return named.empty() ? "its items" : named.front();
  return fmt::format("{}", fmt::join(named, " and "));
}

std::string advice_for(const WorkView& work) {
  const NodeFacts::Work& slowest = work.slowest();
  if (slowest.planned_seconds == 0) {
    return "place the items by what they cost (mode=\"spd\" of KFAC, braid.place)";
  }
  if (slowest.seconds >= kSlowerThanPlanned * slowest.planned_seconds) {
    return fmt::format(
        "rank {} was to need {}: look at what else runs on {}, and at its GPU's clock",
        slowest.rank, format_time(slowest.planned_seconds), *work.ranks.front().node);
  }
  return "costs have changed since items were placed; KFAC places them anew, more and more rarely";
}

// `per_step`: updates in a step.
Finding off_by(const WorkView& work, double lost, double per_step) {
  const NodeFacts::Work& slowest = work.slowest();
  Finding finding{Cause::Placement,         {},          {}, lost * per_step,
                  *work.ranks.front().node, slowest.rank};
  finding.text = fmt::format(
      "The {} of {} take {} on rank {} on {}; most others need {} for theirs, and wait for up to "
      "{}: placement is off by {:.1f}",
      work.work, items_text(slowest), format_time(slowest.seconds), slowest.rank, finding.node,
      format_time(work.median_of_others(&NodeFacts::Work::seconds)),
      format_time(work.wait_seconds()), slowest.seconds / work.least_seconds());
  if (is_worth(slowest.input_wait_seconds, slowest.interval_seconds)) {
    finding.text += fmt::format("; rank {} first waits {} for what it computes them of",
                                slowest.rank, format_time(slowest.input_wait_seconds));
  }
  finding.advice = advice_for(work);
  return finding;
}

}  // namespace

void find_placement(const Evidence& evidence, Findings& findings) {
  for (const WorkView& work : works_of(evidence)) {
    const double slowest = work.slowest().seconds, least = work.least_seconds();
    const double interval = std::max(work.slowest().interval_seconds, evidence.step_seconds);
    if (least <= 0 || slowest < kOffBy * least) continue;
    // Nothing is lost that nobody waits for.
    const double lost = std::min(slowest - least, work.wait_seconds());
    const double per_step = evidence.step_seconds / interval;
    if (is_worth(lost * per_step, evidence.step_seconds))
      findings.push_back(off_by(work, lost, per_step));
  }
}

}  // namespace braid
