// SPDX-License-Identifier: Apache-2.0
#include "braidctl/status_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/ranges.h>

#include "base/amount.h"
#include "base/socket_address.h"
#include "braidctl/gpu_view.h"
#include "braidctl/text_table.h"
#include "explain/job_view.h"

namespace braid {
namespace {

using Row = std::vector<std::string>;

// All flows of one direction between this node and another.
struct FlowSummary {
  std::map<std::string, size_t> count_of_state;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t failures = 0;

  std::string states() const {
    Row parts;
    for (const auto& [state, count] : count_of_state) {
      parts.push_back(fmt::format("{} {}", count, printable(state)));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }
};

// What happened last to each flow that does not work now.
std::string render_failures(const DaemonStatus& status) {
  std::string out;
  for (const DaemonStatus::Flow& flow : status.flows) {
    if (flow.state != "open" && !flow.error.empty())
      out += fmt::format("  {}: {}\n", printable(flow.state), printable(flow.error));
  }
  return out.empty() ? "" : "flows that do not work:\n" + out;
}

std::string render_links(const DaemonStatus& status) {
  std::map<std::pair<std::string, std::string>, FlowSummary> links;  // by peer and direction
  for (const DaemonStatus::Flow& flow : status.flows) {
    FlowSummary& link = links[{flow.peer, flow.direction}];
    ++link.count_of_state[flow.state];
    link.bytes_sent += flow.bytes_sent;
    link.bytes_received += flow.bytes_received;
    link.failures += flow.failures;
  }
  if (links.empty()) return "no links to other nodes\n";
  std::vector<Row> rows = {{"LINK", "DIRECTION", "FLOWS", "SENT", "RECEIVED", "FAILURES"}};
  for (const auto& [key, link] : links) {
    rows.push_back({printable(key.first), printable(key.second), link.states(),
                    format_amount(link.bytes_sent), format_amount(link.bytes_received),
                    std::to_string(link.failures)});
  }
  return render_table(rows) + render_failures(status);
}

// Where no duel is over yet there is nothing to say.
std::string render_duel(const DaemonStatus::DuelFound& found, std::string_view rival,
                        std::string_view if_it_pays, std::string_view if_not) {
  if (found.duels == 0 || found.gain <= 0) return {};
  const double percent = 100 * (1 - 1 / found.gain);
  const std::string effect = std::abs(percent) < 0.5
                                 ? "no difference"
                                 : fmt::format("operations {:.0f} % {}", std::abs(percent),
                                               percent > 0 ? "shorter" : "longer");
  return fmt::format("  {} makes {}, {} {} ({} {})\n", rival, effect,
                     percent > 0.5 && !found.pays ? "but not clearly, so" : "so",
                     found.pays ? if_it_pays : if_not, found.duels,
                     found.duels == 1 ? "duel" : "duels");
}

std::string render_members(const DaemonStatus::Job& job) {
  std::string out = fmt::format("\nranks of {}:\n", printable(job.name));
  for (const DaemonStatus::JobNode& node : job.nodes) {
    const std::string rack =
        node.rack.empty() ? "" : fmt::format(", rack {}", printable(node.rack));
    out += fmt::format("  {} ({}{}): {}\n", printable(node.name), printable(node.address), rack,
                       format_ranks(node.ranks));
  }
  for (const DaemonStatus::LocalRank& rank : job.local_ranks) {
    out += fmt::format("  rank {} is process {} of user {}: {} in input arenas\n", rank.rank,
                       rank.pid, rank.uid, format_amount(rank.arena_memory_bytes));
  }
  for (const DaemonStatus::Work& work : job.work) {
    const std::string planned = work.planned_seconds == 0
                                    ? ""
                                    : fmt::format(" ({:.1f} placed)", work.planned_seconds * 1e3);
    out += fmt::format("  rank {} computes {} for {:.1f} ms{} of an update, and waits {:.1f} ms\n",
                       work.rank, printable(work.work), work.seconds * 1e3, planned,
                       work.wait_seconds * 1e3);
  }
  out +=
      fmt::format("  memory for results: {}, {} in use\n", format_amount(job.result_memory_bytes),
                  format_amount(job.result_memory_used_bytes));
  return out +
         render_duel(job.polling, "polling", "threads that wait poll", "threads that wait sleep") +
         render_duel(job.few_flows, "one flow for each rail", "no other is used",
                     "all flows are used");
}

std::string render_jobs(const DaemonStatus& status) {
  if (status.jobs.empty()) return "no jobs\n";
  std::vector<Row> rows = {{"JOB", "EPOCH", "STATE", "NODES", "RANKS", "WEIGHT", "STEPS",
                            "OPERATIONS", "PENDING", "BYTES"}};
  std::string members;
  for (const DaemonStatus::Job& job : status.jobs) {
    rows.push_back({printable(job.name), std::to_string(job.epoch), printable(job.state),
                    std::to_string(job.nodes.size()), std::to_string(job.world_size),
                    std::to_string(job.weight), std::to_string(job.steps_done),
                    std::to_string(job.operations_done), std::to_string(job.operations_pending),
                    format_amount(job.bytes)});
    members += render_members(job);
  }
  return render_table(rows) + members;
}

std::string render_rails(const DaemonStatus& status) {
  Row rails;
  for (const std::string& rail : status.rails) {
    const bool is_down = std::find(status.rails_down.begin(), status.rails_down.end(), rail) !=
                         status.rails_down.end();
    rails.push_back(printable(rail) + (is_down ? " (down)" : ""));
  }
  return fmt::format("{}", fmt::join(rails, ", "));
}

std::string render_peers(const DaemonStatus& status) {
  Row peers;
  for (const DaemonStatus::Peer& peer : status.peers) {
    peers.push_back(fmt::format("{} ({})", printable(peer.name),
                                printable(host_and_port(peer.address, peer.port))));
  }
  return peers.empty() ? "none" : fmt::format("{}", fmt::join(peers, ", "));
}

}  // namespace

// Daemons before it was there say nothing of it.
static std::string render_polling(const DaemonStatus& status) {
  if (status.polling.mode.empty()) return {};
  const double share =
      status.uptime_seconds <= 0 ? 0 : 100 * status.polling.seconds / status.uptime_seconds;
  return fmt::format("polling:   {}, {:.2f} % of a core since the start\n",
                     printable(status.polling.mode), share);
}

std::string render_status(const DaemonStatus& status) {
  std::string out = fmt::format("braidd {} on {} ({}), up {}\n", printable(status.version),
                                printable(status.node.name), printable(status.node.address),
                                format_duration(status.uptime_seconds));
  out += fmt::format("transport: {}\n", printable(status.transport));
  out += fmt::format("rails:     {}\n", render_rails(status));
  out += fmt::format("peers:     {}\n", render_peers(status));
  out += render_polling(status);
  return out + "\n" + render_gpus(status) + render_links(status) + "\n" + render_jobs(status) +
         hidden_line(status.jobs_hidden);
}

std::string hidden_line(uint32_t jobs) {
  return jobs == 0 ? std::string()
                   : fmt::format("\n{} {} of other users {} not shown\n", jobs,
                                 jobs == 1 ? "job" : "jobs", jobs == 1 ? "is" : "are");
}

std::string hidden_note(uint32_t jobs) {
  return jobs == 0 ? std::string()
                   : fmt::format(" ({} {} of other users {} not shown)", jobs,
                                 jobs == 1 ? "job" : "jobs", jobs == 1 ? "is" : "are");
}

std::string format_ranks(std::vector<uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  Row parts;
  for (size_t first = 0; first < ranks.size();) {
    size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    parts.push_back(first == last ? std::to_string(ranks[first])
                                  : fmt::format("{}-{}", ranks[first], ranks[last]));
    first = last + 1;
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace braid
