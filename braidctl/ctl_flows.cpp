// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_flows.h"

#include <algorithm>
#include <tuple>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "arguments/format_option.h"
#include "base/amount.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"
#include "client/status_client.h"
#include "explain/job_view.h"

namespace braid {
namespace {

constexpr uint32_t kFlowsTimeoutMs = 5000;

bool is_before(const DaemonStatus::Flow& one, const DaemonStatus::Flow& other) {
  const auto key = [](const DaemonStatus::Flow& flow) {
    return std::tie(flow.peer, flow.direction, flow.rail, flow.bytes_per_second, flow.io_loop,
                    flow.flow);
  };
  return key(one) < key(other);
}

std::string last_errors(const std::vector<DaemonStatus::Flow>& flows) {
  std::string text;
  for (const DaemonStatus::Flow& flow : flows) {
    if (flow.error.empty()) continue;
    text += fmt::format("  {} flow {}.{}: {}\n", printable(flow.peer), flow.io_loop, flow.flow,
                        printable(flow.error));
  }
  return text.empty() ? text : "\nwhat failed last:\n" + text;
}

}  // namespace

CLI::App* add_flows_command(CLI::App& app, FlowsCommand& command) {
  CLI::App* flows =
      app.add_subcommand("flows", "list the flows between this node and others, the slowest first");
  flows->fallthrough();
  flows->add_option("--peer", command.peer, "those to and from this node only");
  add_format_options(*flows, command.as_json, "print them as JSON, as they stand in the status");
  return flows;
}

std::string flows_table(std::vector<DaemonStatus::Flow> flows) {
  if (flows.empty()) return "no flows to other nodes\n";
  std::ranges::sort(flows, is_before);
  std::vector<std::vector<std::string>> rows = {{"PEER", "DIRECTION", "RAIL", "LOOP.FLOW", "STATE",
                                                 "DELIVERS", "ROUND TRIP", "PATH", "RESENT", "SENT",
                                                 "RECEIVED", "FAILURES"}};
  for (const DaemonStatus::Flow& flow : flows) {
    rows.push_back({printable(flow.peer), printable(flow.direction), printable(flow.rail),
                    fmt::format("{}.{}", flow.io_loop, flow.flow), printable(flow.state),
                    flow.bytes_per_second > 0 ? format_rate(flow.bytes_per_second) : "-",
                    flow.round_trip_ms > 0 ? format_time(flow.round_trip_ms / 1e3) : "-",
                    flow.path_round_trip_ms > 0 ? format_time(flow.path_round_trip_ms / 1e3) : "-",
                    flow.path_round_trip_ms > 0 ? std::to_string(flow.segments_resent) : "-",
                    format_amount(flow.bytes_sent), format_amount(flow.bytes_received),
                    std::to_string(flow.failures)});
  }
  return render_table(rows) + last_errors(flows);
}

Result<CommandOutput> run_flows(const DaemonSource& daemon, const FlowsCommand& command) {
  const auto json = daemon.status(kFlowsTimeoutMs);
  if (!json) return json.status();
  auto status = parse_status(*json);
  if (!status) return status.status();
  std::vector<std::string> peers;
  for (const DaemonStatus::Flow& flow : status->flows)
    if (std::ranges::count(peers, printable(flow.peer)) == 0) peers.push_back(printable(flow.peer));
  if (!command.peer.empty()) {
    std::erase_if(status->flows,
                  [&command](const DaemonStatus::Flow& flow) { return flow.peer != command.peer; });
    if (status->flows.empty()) {
      return make_status(StatusCode::NotFound, "no flows to or from '{}'; there are some to {}",
                         command.peer,
                         peers.empty() ? "no node" : fmt::format("{}", fmt::join(peers, ", ")));
    }
  }
  return CommandOutput{
      command.as_json ? flows_json(status->flows) + '\n' : flows_table(std::move(status->flows)),
      {}};
}

}  // namespace braid
