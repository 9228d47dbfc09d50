// SPDX-License-Identifier: Apache-2.0
// What people read of an explanation.
#include <gmock/gmock.h>

#include "explain/explained_job.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExplanationText, SaysWhatHoldsAndWhatCosts) {
  testing::ExplainedJob job;
  job.delay_ms(1, 0, 40);
  const auto explanation = job.explain().value();
  const std::string text = explanation_text(explanation);
  EXPECT_THAT(text, HasSubstr("3 ranks on 3 nodes; a step takes"));
  EXPECT_THAT(text, HasSubstr("\n1. Rank 1 on b"));
  EXPECT_THAT(text, HasSubstr("It costs up to 40 ms of each step.\n"));
}

TEST(ExplanationText, NamesCannotMakeLinesOfTheirOwn) {
  Explanation explanation;
  explanation.job = "a\nb\x1b[2J";
  explanation.step_seconds = 1;
  explanation.findings = {{Cause::Compute, "x\ny", "z\r", 0, "", {}}};
  EXPECT_THAT(explanation_text(explanation), HasSubstr("job 'a\\nb\\x1b[2J'"));
  EXPECT_THAT(explanation_text(explanation), HasSubstr("1. x\\ny.\n   What helps: z\\x0d.\n"));
}

TEST(ExplanationText, ManyCausesAreCounted) {
  Explanation explanation;
  explanation.job = "train";
  explanation.step_seconds = 1;
  explanation.findings.resize(23);
  EXPECT_THAT(explanation_text(explanation), HasSubstr("\n20. "));
  EXPECT_THAT(explanation_text(explanation), Not(HasSubstr("\n21. ")));
  EXPECT_THAT(explanation_text(explanation), HasSubstr("\n3 more causes cost less"));
}

}  // namespace
}  // namespace braid
