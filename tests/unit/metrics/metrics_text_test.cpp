// SPDX-License-Identifier: Apache-2.0
#include "metrics/metrics_server.h"

#include <array>
#include <atomic>
#include <sstream>
#include <thread>
#include <unordered_set>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"

namespace braid {
namespace {

// Invalid if nobody listens.
Fd connect_to(uint16_t port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout{20, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return Fd();
  return fd;
}

// GET `path` from 127.0.0.1; "" if nobody answers.
std::string get(uint16_t port, const std::string& path) {
  const Fd fd = connect_to(port);
  if (!fd.is_valid()) return "";
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while ((count = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0) {
    answer.append(buffer.data(), static_cast<size_t>(count));
  }
  return answer;
}

std::unique_ptr<MetricsServer> serve(std::vector<MetricsSource> sources) {
  auto server = MetricsServer::create("127.0.0.1", 0, std::move(sources));
  EXPECT_TRUE(server.is_ok()) << server.status().message();
  return std::move(server).value();
}

void expect_line(const std::string& answer, const std::string& line) {
  EXPECT_NE(answer.find("\n" + line + "\n"), std::string::npos) << line << " in:\n" << answer;
}

TEST(MetricsServer, ServesWhatItsSourcesSay) {
  std::atomic<uint64_t> units = 3;
  const auto server = serve({[&] {
    return std::vector<MetricSample>{{Metric::BuildInfo, {"0.1.0", "1.13.1"}, 1},
                                     {Metric::Units, {}, static_cast<double>(units.load())},
                                     {Metric::Operations, {"all-reduce"}, 5},
                                     {Metric::Flows, {"open"}, 8}};
  }});
  std::string answer = get(server->port(), "/metrics");
  EXPECT_EQ(answer.find("HTTP/1.1 200"), 0u) << answer;
  expect_line(answer, "braid_build_info{version=\"0.1.0\",ucx=\"1.13.1\"} 1");
  expect_line(answer, "# TYPE braid_units_total counter");
  expect_line(answer, "braid_units_total 3");
  expect_line(answer, "braid_operations_total{collective=\"all-reduce\"} 5");
  expect_line(answer, "# TYPE braid_flows gauge");
  expect_line(answer, "braid_flows{state=\"open\"} 8");
  units = 4;
  expect_line(get(server->port(), "/metrics"), "braid_units_total 4");
}

TEST(MetricsServer, LargeCountersAreNotRounded) {
  const auto server = serve({[] {
    return std::vector<MetricSample>{{Metric::OperationBytes, {}, 9'007'199'254'740'991.0}};
  }});
  expect_line(get(server->port(), "/metrics"), "braid_operation_bytes_total 9007199254740991");
}

TEST(MetricsServer, AddsUpTheSourcesOfOneSeries) {
  const MetricsSource loop = [] {
    return std::vector<MetricSample>{{Metric::Units, {}, 2}, {Metric::Flows, {"open"}, 4}};
  };
  const auto server = serve({loop, loop});
  const std::string answer = get(server->port(), "/metrics");
  expect_line(answer, "braid_units_total 4");
  expect_line(answer, "braid_flows{state=\"open\"} 8");
}

TEST(MetricsServer, CountersBeginAtZeroAndGaugesOnlyWhenKnown) {
  const auto server = serve({});
  const std::string answer = get(server->port(), "/metrics");
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

TEST(MetricsServer, NamesOfJobsMayBeAnything) {
  const std::string long_name(255, 'x');
  const auto server = serve({[&] {
    return std::vector<MetricSample>{
        {Metric::JobSteps, {"say \"hi\" \\ bye"}, 1}, {Metric::JobSteps, {"two\nlines"}, 2},
        {Metric::JobSteps, {"two\rlines"}, 3},        {Metric::JobSteps, {"caf\xe9"}, 4},
        {Metric::JobSteps, {long_name}, 5},           {Metric::JobSteps, {"{job=\"x\"} 9"}, 6}};
  }});
  const std::string answer = get(server->port(), "/metrics");
  expect_line(answer, R"(braid_job_steps_total{job="say \"hi\" \\ bye"} 1)");
  expect_line(answer, R"(braid_job_steps_total{job="two?lines"} 5)");
  expect_line(answer, R"(braid_job_steps_total{job="caf?"} 4)");
  expect_line(answer, "braid_job_steps_total{job=\"" + long_name + "\"} 5");
  expect_line(answer, R"(braid_job_steps_total{job="{job=\"x\"} 9"} 6)");
}

// Each has all series that a job may have, with two ranks.
TEST(MetricsServer, HasRoomForAThousandJobs) {
  constexpr size_t kJobs = 1000;
  const auto server = serve({[] {
    std::vector<MetricSample> samples;
    for (size_t job = 0; job < kJobs; ++job) {
      for (const MetricInfo& info : metric_infos()) {
        if (!info.is_of_job()) continue;
        for (size_t second = 0; second < info.labels.size(); ++second) {
          std::vector<std::string> labels = {fmt::format("job-{}", job)};
          if (info.labels.size() > 1) labels.push_back(std::to_string(second));
          samples.push_back({info.metric, labels, static_cast<double>(job) + 0.5});
        }
      }
    }
    return samples;
  }});
  std::istringstream answer(get(server->port(), "/metrics"));
  std::unordered_set<std::string> lines;
  for (std::string line; std::getline(answer, line);) lines.insert(line);
  for (size_t job = 0; job < kJobs; ++job) {
    const std::string steps = fmt::format("braid_job_steps_total{{job=\"job-{}\"}} {}.5", job, job);
    ASSERT_TRUE(lines.contains(steps)) << steps;
    const std::string wait = fmt::format(
        "braid_job_rank_wait_seconds_total{{job=\"job-{}\",rank=\"1\"}} {}.5", job, job);
    ASSERT_TRUE(lines.contains(wait)) << wait;
  }
}

TEST(MetricsServer, ManyMayScrapeAtOnce) {
  std::atomic<int> asked = 0;
  const auto server = serve({[&] {
    return std::vector<MetricSample>{{Metric::Jobs, {}, static_cast<double>(++asked)}};
  }});
  std::vector<std::thread> scrapers;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 8; ++i) {
    scrapers.emplace_back([&] {
      if (get(server->port(), "/metrics").find("braid_jobs ") != std::string::npos) ++answered;
    });
  }
  for (std::thread& scraper : scrapers) scraper.join();
  EXPECT_EQ(answered, 8);
  EXPECT_EQ(asked, 8);
}

// More of them than the server has threads.
TEST(MetricsServer, ClientsThatHaveStoppedHoldUpNobodyForLong) {
  const auto server = serve({[] { return std::vector<MetricSample>{{Metric::Jobs, {}, 1}}; }});
  std::vector<Fd> stopped;
  for (int i = 0; i < 10; ++i) {
    stopped.push_back(connect_to(server->port()));
    ASSERT_TRUE(stopped.back().is_valid());
    // Half of them have asked in part.
    const std::string part = i % 2 == 0 ? "" : "GET /metrics HT";
    ASSERT_EQ(::send(stopped.back().get(), part.data(), part.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(part.size()));
  }
  EXPECT_NE(get(server->port(), "/metrics").find("braid_jobs 1"), std::string::npos);
}

TEST(MetricsServer, AskedNoMoreOnceDestroyed) {
  auto server = serve({});
  const uint16_t port = server->port();
  ASSERT_NE(get(port, "/metrics"), "");
  server.reset();
  EXPECT_EQ(get(port, "/metrics"), "");
}

TEST(MetricsServer, OtherPathsAreNotFound) {
  const auto server = serve({});
  const std::string answer = get(server->port(), "/");
  EXPECT_EQ(answer.find(" 404 Not Found"), 8u) << answer;
}

TEST(MetricsServer, APortInUseIsExplained) {
  const auto first = serve({});
  const auto second = MetricsServer::create("127.0.0.1", first->port(), {});
  ASSERT_FALSE(second.is_ok());
  EXPECT_EQ(second.status().message().find(
                fmt::format("metrics.port: cannot serve /metrics on 127.0.0.1:{}", first->port())),
            0u);
}

TEST(MetricsServer, AnAddressOfAnotherHostIsExplained) {
  const auto server = MetricsServer::create("192.0.2.200", 0, {});
  ASSERT_FALSE(server.is_ok());
  EXPECT_NE(server.status().message().find("metrics.address"), std::string::npos);
}

}  // namespace
}  // namespace braid
