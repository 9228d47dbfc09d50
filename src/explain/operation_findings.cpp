// SPDX-License-Identifier: Apache-2.0
// What bounds jobs without planned tensors, which have no steps.
#include <algorithm>

#include <fmt/format.h>

#include "explain/findings.h"
#include "explain/operation_order.h"

namespace braid {
namespace {

constexpr size_t kLastSubmittersMax = 3;
constexpr size_t kLateInMin = 3;  // operations; once is an accident

double percent(double part, double whole) { return part / whole * 100; }

}  // namespace

void find_last_submitters(const Evidence& evidence, const OperationOrder& order,
                          Findings& findings) {
  Findings late;
  for (const OperationOrder::Rank& rank : order.ranks) {
    if (rank.last_in < kLateInMin || !is_worth(rank.waited_for, evidence.step_seconds)) continue;
    Finding finding{Cause::LateRank, {}, {}, rank.waited_for, rank.node, rank.rank};
    finding.text = fmt::format(
        "Rank {} on {} submits {} of {} operations after the others, {} later in the median ({} "
        "the most); {:.0f} % of the time others wait for it",
        rank.rank, rank.node, rank.last_in, order.operations, format_time(rank.late),
        rank.operation, percent(rank.waited_for, order.seconds));
    finding.advice = fmt::format(
        "look at what else runs on {}, at its GPU's clock and temperature, and at this rank's "
        "input",
        rank.node);
    late.push_back(std::move(finding));
  }
  std::ranges::stable_sort(late, std::ranges::greater(), &Finding::seconds_per_step);
  if (late.size() > kLastSubmittersMax) late.resize(kLastSubmittersMax);
  findings.insert(findings.end(), late.begin(), late.end());
}

Finding without_late_ranks(const Evidence& evidence, const OperationOrder& order) {
  Finding finding;
  const double share = percent(order.network, order.seconds);
  if (!evidence.is_exposed()) {
    finding.text = fmt::format(
        "No rank submits well after the others, and only {:.0f} % of the time is an operation on "
        "its way that all have submitted: compute bounds the job",
        share);
    return finding;
  }
  finding.cause = Cause::Network;
  finding.seconds_per_step = order.network;
  finding.text = fmt::format(
      "No rank submits well after the others; {:.0f} % of the time an operation is on its way that "
      "all have submitted. What of that is hidden behind compute only the trainers know",
      share);
  finding.advice = "fewer bytes, larger batches, or faster rails";
  return finding;
}

}  // namespace braid
