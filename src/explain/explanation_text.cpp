// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/printable.h"
#include "explain/explanation.h"
#include "explain/job_view.h"

namespace braid {
namespace {

constexpr size_t kFindingsShown = 20;

std::string finding_text(const Explanation& explanation, const Finding& finding, size_t number) {
  std::string text = fmt::format("{}. {}.\n", number, printable(finding.text));
  if (finding.seconds_per_step > 0 && finding.cause != Cause::Stalled) {
    text += fmt::format(
        "   It costs up to {} of {}.\n", format_time(finding.seconds_per_step),
        explanation.operations == 0 ? "each step" : format_time(explanation.step_seconds));
  }
  if (!finding.advice.empty())
    text += fmt::format("   What helps: {}.\n", printable(finding.advice));
  return text;
}

std::string heading(const Explanation& explanation) {
  const double share = explanation.exposed_seconds / explanation.step_seconds;
  if (explanation.operations != 0) {
    return fmt::format(
        "job '{}': {} ranks on {} nodes; it has no planned tensors, so its steps are not known: "
        "within the {} of its latest {} operations, one that all ranks had submitted was on its "
        "way for {} ({:.0f} %)\n\n",
        printable(explanation.job), explanation.world_size, explanation.nodes,
        format_time(explanation.step_seconds), explanation.operations,
        format_time(explanation.exposed_seconds), share * 100);
  }
  return fmt::format(
      "job '{}': {} ranks on {} nodes; a step takes {}, of which its last rank waits {} ({:.0f} %) "
      "for the network (median of {} steps)\n\n",
      printable(explanation.job), explanation.world_size, explanation.nodes,
      format_time(explanation.step_seconds), format_time(explanation.exposed_seconds), share * 100,
      explanation.steps);
}

}  // namespace

std::string explanation_text(const Explanation& explanation) {
  std::string text = heading(explanation);
  const size_t count = explanation.findings.size();
  for (size_t i = 0; i < std::min(count, kFindingsShown); ++i)
    text += finding_text(explanation, explanation.findings[i], i + 1);
  if (count > kFindingsShown) {
    text += fmt::format("{} more causes cost less: braidctl explain --json has them.\n",
                        count - kFindingsShown);
  }
  return text;
}

}  // namespace braid
