// SPDX-License-Identifier: Apache-2.0
#include "metrics/families.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(MetricInfos, FollowTheRulesOfNames) {
  std::set<std::string_view> names;
  for (const MetricInfo& info : metric_infos()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(info.name.starts_with("braid_")) << info.name;
    EXPECT_EQ(info.name.ends_with("_total"), info.is_counter) << info.name;
    EXPECT_EQ(info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos);
    EXPECT_TRUE(info.help.ends_with('.')) << info.name;
    EXPECT_EQ(&metric_info(info.metric), &info);
    if (!info.label_values.empty()) {
      EXPECT_EQ(info.labels.size(), 1u) << info.name;
    }
  }
  EXPECT_EQ(metric_infos().size(), static_cast<size_t>(Metric::JobRankGpu) + 1);
}

TEST(MetricInfos, HaveEveryReasonAJobCanFailFor) {
  const auto& values = metric_info(Metric::JobFailures).label_values;
  const std::set<std::string_view> all(values.begin(), values.end());
  EXPECT_EQ(all.size(), kStatusCodeMax);
  for (uint8_t code = 1; code <= kStatusCodeMax; ++code) {
    EXPECT_TRUE(all.contains(reason_label(static_cast<StatusCode>(code))));
  }
  EXPECT_EQ(reason_label(StatusCode::DeadlineExceeded), "deadline_exceeded");
}

TEST(MetricInfos, StandInTheDocument) {
  const std::string path = BRAID_SOURCE_DIR "/docs/reference.md";
  const std::string begin = "<!-- metrics: begin -->\n";
  const std::string end = "<!-- metrics: end -->";
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  const std::string page = content.str();
  const size_t first = page.find(begin);
  const size_t last = page.find(end);
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(last, std::string::npos);
  const std::string expected =
      page.substr(0, first + begin.size()) + print_metrics_markdown() + page.substr(last);
  if (std::getenv("BRAID_UPDATE_DOCUMENTS") != nullptr) {
    std::ofstream(path) << expected;
    return;
  }
  EXPECT_EQ(page, expected) << "run BRAID_UPDATE_DOCUMENTS=1 metrics_test to write it anew";
}

}  // namespace
}  // namespace braid
