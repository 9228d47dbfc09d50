// SPDX-License-Identifier: Apache-2.0
#include "bench/collective_report.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "bench/report.h"

namespace braid::bench {
namespace {

constexpr std::array<const char*, kDataTypeCount> kTypeNames = {
    "float", "double", "half", "bfloat16", "int32", "int64", "uint8"};
constexpr std::array<const char*, kReductionCount> kOpNames = {"sum", "avg", "min", "max", "prod"};

// The number whose name it is in nccl-tests or in braid.
template <typename T, size_t Count>
Result<T> parse_name(std::string_view name, const std::array<const char*, Count>& names) {
  for (size_t i = 0; i < Count; ++i) {
    const auto value = static_cast<T>(i);
    if (name == names[i] || name == to_string(value)) return value;
  }
  return make_status(StatusCode::InvalidArgument, "'{}' is none of {}", name,
                     fmt::join(names, ", "));
}

// As many digits behind the point as there is room for.
std::string in_width(double value, size_t width) {
  for (const int digits : {2, 1, 0}) {
    std::string text = fmt::format("{:.{}f}", value, digits);
    if (text.size() <= width) return text;
  }
  return fmt::format("{:.{}e}", value, width < 7 ? 0 : 1);
}

std::string line(const auto& size, const auto& count, const auto& type, const auto& op,
                 const auto& root) {
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", size, count, type, op, root);
}

std::string figures(const auto& time, const auto& algbw, const auto& busbw, const auto& wrong) {
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", time, algbw, busbw, wrong);
}

using Json = nlohmann::ordered_json;

Json counts_json(const OperationCounts& counts) {
  const auto known = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  const auto process = [&](const OperationCounts::Process& one) {
    return Json{{"system_calls", known(one.system_calls)}, {"wake_ups", known(one.wake_ups)}};
  };
  Json daemon = process(counts.daemon);
  daemon["bytes_reduced"] = known(counts.reduced);
  daemon["bytes_copied"] = known(counts.copied);
  daemon["bytes_sent"] = known(counts.sent);
  daemon["bytes_received"] = known(counts.received);
  return {{"operations", counts.operations},
          {"daemon", std::move(daemon)},
          {"trainer", process(counts.trainer)},
          {"why_not", counts.why_not}};
}

}  // namespace

const char* nccl_name(DataType dtype) { return kTypeNames[static_cast<size_t>(dtype)]; }
const char* nccl_name(Reduction reduction) { return kOpNames[static_cast<size_t>(reduction)]; }

std::vector<std::string_view> datatype_names() { return {kTypeNames.begin(), kTypeNames.end()}; }
std::vector<std::string_view> op_names() { return {kOpNames.begin(), kOpNames.end()}; }

Result<DataType> parse_datatype(std::string_view name) {
  return parse_name<DataType>(name, kTypeNames);
}

Result<Reduction> parse_op(std::string_view name) { return parse_name<Reduction>(name, kOpNames); }

Result<Surroundings> surroundings_of(const DaemonStatus& status, const std::string& job_name) {
  const auto job = std::find_if(status.jobs.begin(), status.jobs.end(),
                                [&](const DaemonStatus::Job& one) { return one.name == job_name; });
  if (job == status.jobs.end()) {
    return make_status(StatusCode::NotFound, "braidd on node '{}' does not know the job '{}'",
                       status.node.name, job_name);
  }
  Surroundings around{static_cast<uint32_t>(job->nodes.size()), 0, status.transport};
  if (job->nodes.size() < 2) return around;
  const auto self = std::find_if(
      job->nodes.begin(), job->nodes.end(),
      [&](const DaemonStatus::JobNode& node) { return node.name == status.node.name; });
  if (self == job->nodes.end()) {
    return make_status(StatusCode::Internal, "node '{}' is not among the nodes of its own job '{}'",
                       status.node.name, job_name);
  }
  const auto next = self + 1 == job->nodes.end() ? job->nodes.begin() : self + 1;
  around.flows = static_cast<uint32_t>(
      std::count_if(status.flows.begin(), status.flows.end(), [&](const DaemonStatus::Flow& flow) {
        return flow.peer == next->name && flow.direction == "out" && flow.state == "open";
      }));
  return around;
}

double Measurement::mean_seconds() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

double algorithm_bandwidth(const Measurement& measurement) {
  const double seconds = measurement.mean_seconds();
  return seconds > 0 ? static_cast<double>(measurement.bytes) / 1e9 / seconds : 0;
}

double bus_bandwidth(const CollectiveSetup& setup, const Measurement& measurement) {
  return algorithm_bandwidth(measurement) * bus_factor(setup.kind, setup.world_size);
}

std::string table_heading(const CollectiveSetup& setup, const Course& course,
                          const Surroundings& around) {
  std::string text = fmt::format("# braid-bench version {}\n# Collective test starting: {}\n",
                                 kBraidVersion, setup.kind.name);
  text += fmt::format(
      "# ranks {} nodes {} {} warmup iters: {} iters: {} validation: {}\n"
      "# flows to the next node: {}; {}\n#\n",
      setup.world_size, around.nodes, course.range, course.warmup, course.iterations, course.checks,
      around.flows, around.transport);
  const auto heading = [](const std::string& left, const std::string& right) {
    return "#" + left.substr(1) + right;
  };
  text += heading(line("", "", "", "", ""), fmt::format("{:^31}", "out-of-place"));
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n' + heading(line("size", "count", "type", "redop", "root"),
                         figures("time", "algbw", "busbw", "#wrong"));
  text += '\n' +
          heading(line("(B)", "(elements)", "", "", ""), figures("(us)", "(GB/s)", "(GB/s)", ""));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string table_row(const CollectiveSetup& setup, const Measurement& measurement) {
  const auto reduction = setup.reduction_if_any();
  return line(measurement.bytes, measurement.count, nccl_name(setup.dtype),
              reduction ? nccl_name(*reduction) : "none",
              has_root(setup.kind.collective) ? static_cast<int64_t>(setup.root) : -1) +
         figures(in_width(measurement.mean_seconds() * 1e6, 7),
                 in_width(algorithm_bandwidth(measurement), 6),
                 in_width(bus_bandwidth(setup, measurement), 6),
                 measurement.wrong ? fmt::format("{:g}", static_cast<double>(*measurement.wrong))
                                   : "N/A");
}

std::string table_end(const std::vector<double>& bus_bandwidths, size_t out_of_bounds) {
  const double sum = std::accumulate(bus_bandwidths.begin(), bus_bandwidths.end(), 0.0);
  return fmt::format("# {:<20} : {} {}\n# {:<20} : {:g}\n#", "Out of bounds values", out_of_bounds,
                     out_of_bounds == 0 ? "OK" : "FAILED", "Avg bus bandwidth",
                     sum / static_cast<double>(bus_bandwidths.size()));
}

std::string to_json(const CollectiveSetup& setup, const Measurement& measurement,
                    const Surroundings& around) {
  const auto reduction = setup.reduction_if_any();
  nlohmann::ordered_json json;
  json["collective"] = setup.kind.name;
  json["bytes"] = measurement.bytes;
  json["count"] = measurement.count;
  json["dtype"] = to_string(setup.dtype);
  json["reduction"] = nullptr;
  if (reduction) json["reduction"] = to_string(*reduction);
  json["root"] = nullptr;
  if (has_root(setup.kind.collective)) json["root"] = setup.root;
  json["ranks"] = setup.world_size;
  json["nodes"] = around.nodes;
  json["mean_seconds"] = measurement.mean_seconds();
  json["median_seconds"] = median(measurement.seconds);
  json["p99_seconds"] = p99(measurement.seconds);
  json["algbw_gigabytes_per_second"] = algorithm_bandwidth(measurement);
  json["busbw_gigabytes_per_second"] = bus_bandwidth(setup, measurement);
  json["wrong"] = nullptr;
  if (measurement.wrong) json["wrong"] = *measurement.wrong;
  json["cpu_seconds"] = measurement.cpu_seconds;
  json["checking_cpu_seconds"] = measurement.checking_cpu_seconds;
  if (measurement.counts) json["counts"] = counts_json(*measurement.counts);
  json["flows"] = around.flows;
  json["transport"] = around.transport;
  return json.dump();
}

}  // namespace braid::bench
