// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace braid::bench {
std::string format_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

double median(std::vector<double> values) {
  BRAID_ASSERT(!values.empty(), "no iteration, no median");
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double p99(std::vector<double> values) {
  BRAID_ASSERT(!values.empty(), "no iteration, no percentile");
  std::sort(values.begin(), values.end());
  const size_t count = (values.size() * 99 + 99) / 100;  // of the values up to it
  return values[count - 1];
}

double bus_gbit_per_second(uint64_t bytes, uint32_t ranks, double seconds) {
  if (seconds <= 0) return 0;
  const double n = ranks;
  return 2 * (n - 1) / n * static_cast<double>(bytes) * 8 / seconds / 1e9;
}

Status describe(const DaemonStatus& status, const std::string& job_name, Measurement& measurement) {
  const auto job = std::find_if(status.jobs.begin(), status.jobs.end(),
                                [&](const DaemonStatus::Job& one) { return one.name == job_name; });
  if (job == status.jobs.end()) {
    return make_status(StatusCode::NotFound, "braidd on node '{}' does not know the job '{}'",
                       status.node.name, job_name);
  }
  measurement.nodes = static_cast<uint32_t>(job->nodes.size());
  measurement.transport = status.transport;
  measurement.flows = 0;
  if (job->nodes.size() < 2) return Status::ok();
  const auto self = std::find_if(
      job->nodes.begin(), job->nodes.end(),
      [&](const DaemonStatus::JobNode& node) { return node.name == status.node.name; });
  if (self == job->nodes.end()) {
    return make_status(StatusCode::Internal, "node '{}' is not among the nodes of its own job '{}'",
                       status.node.name, job_name);
  }
  const auto next = self + 1 == job->nodes.end() ? job->nodes.begin() : self + 1;
  measurement.flows = static_cast<uint32_t>(
      std::count_if(status.flows.begin(), status.flows.end(), [&](const DaemonStatus::Flow& flow) {
        return flow.peer == next->name && flow.direction == "out" && flow.state == "open";
      }));
  return Status::ok();
}

std::string to_json(const Measurement& measurement) {
  const double middle = median(measurement.seconds);
  nlohmann::ordered_json json;
  json["bytes"] = measurement.bytes;
  json["dtype"] = measurement.dtype;
  json["ranks"] = measurement.ranks;
  json["nodes"] = measurement.nodes;
  json["median_seconds"] = middle;
  json["p99_seconds"] = p99(measurement.seconds);
  json["bus_gbit_per_second"] = bus_gbit_per_second(measurement.bytes, measurement.ranks, middle);
  json["cpu_seconds"] = measurement.cpu_seconds;
  json["checking_cpu_seconds"] = measurement.checking_cpu_seconds;
  json["flows"] = measurement.flows;
  json["transport"] = measurement.transport;
  return json.dump();
}

std::string table_heading(const Measurement& first) {
  return fmt::format(
      "# all-reduce of {}; ranks: {}, nodes: {}, flows to the next node: {}; {}\n{:>14} {:>12} "
      "{:>12} {:>14}",
      first.dtype, first.ranks, first.nodes, first.flows, first.transport, "bytes", "median", "p99",
      "bus Gbit/s");
}

std::string table_row(const Measurement& measurement) {
  const double middle = median(measurement.seconds);
  return fmt::format("{:>14} {:>12} {:>12} {:>14.3f}", measurement.bytes, format_seconds(middle),
                     format_seconds(p99(measurement.seconds)),
                     bus_gbit_per_second(measurement.bytes, measurement.ranks, middle));
}

}  // namespace braid::bench
