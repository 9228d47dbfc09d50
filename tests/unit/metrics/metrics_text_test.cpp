// SPDX-License-Identifier: Apache-2.0
#include "metrics/metrics_text.h"

#include <sstream>
#include <unordered_set>

#include <gtest/gtest.h>

namespace braid {
namespace {

void expect_line(const std::string& answer, const std::string& line) {
  EXPECT_NE(answer.find("\n" + line + "\n"), std::string::npos) << line << " in:\n" << answer;
}

TEST(MetricsText, IsWhatItsSourcesSay) {
  uint64_t units = 3;
  const std::vector<MetricsSource> sources = {[&] {
    return std::vector<MetricSample>{{Metric::BuildInfo, {"0.1.0", "1.13.1"}, 1},
                                     {Metric::Units, {}, static_cast<double>(units)},
                                     {Metric::Operations, {"all-reduce"}, 5},
                                     {Metric::Flows, {"open"}, 8}};
  }};
  std::string answer = metrics_text(sources);
  expect_line(answer, "braid_build_info{version=\"0.1.0\",ucx=\"1.13.1\"} 1");
  expect_line(answer, "# TYPE braid_units_total counter");
  expect_line(answer, "braid_units_total 3");
  expect_line(answer, "braid_operations_total{collective=\"all-reduce\"} 5");
  expect_line(answer, "# TYPE braid_flows gauge");
  expect_line(answer, "braid_flows{state=\"open\"} 8");
  units = 4;
  expect_line(metrics_text(sources), "braid_units_total 4");
}

TEST(MetricsText, LargeCountersAreNotRounded) {
  const std::vector<MetricsSource> sources = {[] {
    return std::vector<MetricSample>{{Metric::OperationBytes, {}, 9'007'199'254'740'991.0}};
  }};
  expect_line(metrics_text(sources), "braid_operation_bytes_total 9007199254740991");
}

TEST(MetricsText, AddsUpTheSourcesOfOneSeries) {
  const MetricsSource loop = [] {
    return std::vector<MetricSample>{{Metric::Units, {}, 2}, {Metric::Flows, {"open"}, 4}};
  };
  const std::vector<MetricsSource> sources = {loop, loop};
  const std::string answer = metrics_text(sources);
  expect_line(answer, "braid_units_total 4");
  expect_line(answer, "braid_flows{state=\"open\"} 8");
}

TEST(MetricsText, CountersBeginAtZeroAndGaugesOnlyWhenKnown) {
  const std::vector<MetricsSource> sources;
  const std::string answer = metrics_text(sources);
  for (const MetricInfo& info : metric_infos()) {
    if (!info.is_counter) {
      EXPECT_EQ(answer.find(info.name), std::string::npos) << info.name;
      continue;
    }
    if (info.labels.empty()) expect_line(answer, std::string(info.name) + " 0");
    for (const std::string_view value : info.label_values) {
      expect_line(answer, fmt::format("{}{{{}=\"{}\"}} 0", info.name, info.labels[0], value));
    }
  }
}

TEST(MetricsText, NamesOfJobsMayBeAnything) {
  const std::string long_name(255, 'x');
  const std::vector<MetricsSource> sources = {[&] {
    return std::vector<MetricSample>{{Metric::JobSteps, {"say \"hi\" \\ bye"}, 1},
                                     {Metric::JobSteps, {"two\nlines"}, 2},
                                     {Metric::JobSteps, {"two\rlines"}, 3},
                                     {Metric::JobSteps, {"caf\xe9"}, 4},
                                     {Metric::JobSteps, {long_name}, 5},
                                     {Metric::JobSteps, {"{training_job=\"x\"} 9"}, 6}};
  }};
  const std::string answer = metrics_text(sources);
  expect_line(answer, R"(braid_job_steps_total{training_job="say \"hi\" \\ bye"} 1)");
  expect_line(answer, R"(braid_job_steps_total{training_job="two?lines"} 5)");
  expect_line(answer, R"(braid_job_steps_total{training_job="caf?"} 4)");
  expect_line(answer, "braid_job_steps_total{training_job=\"" + long_name + "\"} 5");
  expect_line(answer, R"(braid_job_steps_total{training_job="{training_job=\"x\"} 9"} 6)");
}

TEST(MetricsText, HasRoomForAThousandJobs) {
  constexpr size_t kJobs = 1000;
  const std::vector<MetricsSource> sources = {[] {
    std::vector<MetricSample> samples;
    for (size_t job = 0; job < kJobs; ++job) {
      for (const MetricInfo& info : metric_infos()) {
        if (!info.is_of_job()) continue;
        for (size_t second = 0; second < info.labels.size(); ++second) {
          std::vector<std::string> labels = {fmt::format("job-{}", job)};
          labels.resize(info.labels.size(), std::to_string(second));
          samples.push_back({info.metric, labels, static_cast<double>(job) + 0.5});
        }
      }
    }
    return samples;
  }};
  std::istringstream answer(metrics_text(sources));
  std::unordered_set<std::string> lines;
  for (std::string line; std::getline(answer, line);) lines.insert(line);
  for (size_t job = 0; job < kJobs; ++job) {
    const std::string steps =
        fmt::format("braid_job_steps_total{{training_job=\"job-{}\"}} {}.5", job, job);
    ASSERT_TRUE(lines.contains(steps)) << steps;
    const std::string wait = fmt::format(
        "braid_job_rank_wait_seconds_total{{training_job=\"job-{}\",rank=\"1\"}} {}.5", job, job);
    ASSERT_TRUE(lines.contains(wait)) << wait;
  }
}

}  // namespace
}  // namespace braid
