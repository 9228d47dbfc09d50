// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_pending.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "arguments/format_option.h"
#include "base/amount.h"
#include "braidctl/ctl_explain.h"
#include "braidctl/ctl_live.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"
#include "client/status_client.h"
#include "explain/job_view.h"

namespace braid {
namespace {

constexpr size_t kPendingNameCharacters = 40;
constexpr size_t kMissingRanksNamed = 8;

std::string tensors_cell(const PendingOperation& operation) {
  std::string cell = abbreviated(printable(operation.tensor), kPendingNameCharacters);
  if (operation.tensors > 1) cell += fmt::format(" +{}", operation.tensors - 1);
  return cell;
}

// "3 on b, 4 on c"
std::string missing_cell(const PendingOperation& operation) {
  std::vector<std::string> parts;
  for (const PendingOperation::Rank& one : operation.missing) {
    if (parts.size() == kMissingRanksNamed) {
      parts.push_back(fmt::format("{} more", operation.missing.size() - kMissingRanksNamed));
      break;
    }
    parts.push_back(fmt::format("{} on {}", one.rank, printable(one.node)));
  }
  std::string cell = parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
  if (!operation.unknown.empty())
    cell += fmt::format("; not known: {}", format_ranks(operation.unknown));
  return cell;
}

std::string rank_cell(int64_t rank, const std::string& node) {
  if (rank == WaitingMessage::kAnyRank) return "any";
  return node.empty() ? std::to_string(rank) : fmt::format("{} on {}", rank, printable(node));
}

// Empty: there are none.
std::string messages_table(const JobFacts& facts) {
  const std::vector<WaitingMessage> messages = waiting_messages(facts);
  if (messages.empty()) return {};
  std::vector<std::vector<std::string>> rows = {
      {"WAITS", "END", "RANK", "PEER", "TAG", "BYTES", "WAITS FOR"}};
  for (const WaitingMessage& one : messages) {
    rows.push_back({format_time(to_seconds(one.since_ns)), printable(one.end),
                    rank_cell(one.rank, one.node), rank_cell(one.peer, one.peer_node),
                    std::to_string(one.tag), format_amount(one.bytes),
                    one.is_on_its_way   ? "its bytes"
                    : one.end == "send" ? "the receive"
                                        : "the send"});
  }
  uint64_t pending = 0;
  for (const NodeFacts& node : facts.nodes) pending += node.messages_pending;
  std::string title = fmt::format(
      "job '{}': {} pending", printable(facts.job),
      pending == 1 ? "1 end of a message is" : fmt::format("{} ends of messages are", pending));
  if (pending > messages.size())
    title += fmt::format("; the oldest {} that nodes tell of", messages.size());
  return title + "\n\n" + render_table(rows);
}

}  // namespace

CLI::App* add_pending_command(CLI::App& app, PendingCommand& command) {
  CLI::App* pending = app.add_subcommand(
      "pending", "say what a job's operations wait for: which ranks are missing");
  pending->fallthrough();
  pending
      ->add_option("--job", command.job,
                   "a job that runs on this node (default: the only one); all of its nodes are "
                   "asked")
      ->type_name(kJobValue);
  add_format_options(*pending, command.as_json);
  return pending;
}

Result<CommandOutput> run_pending(const DaemonSource& daemon, const PendingCommand& command) {
  const auto facts = ask_about(daemon, command.job);
  if (!facts) return facts.status();
  const std::vector<PendingOperation> operations = pending_operations(*facts);
  CommandOutput output{
      command.as_json ? pending_json(*facts, operations) + '\n' : pending_table(*facts, operations),
      {}};
  if (!facts->missing.empty()) {
    output.warnings.push_back(
        fmt::format("no answer from {}: nothing is known of its ranks",
                    printable(fmt::format("{}", fmt::join(facts->missing, ", ")))));
  }
  return output;
}

std::string pending_table(const JobFacts& facts, const std::vector<PendingOperation>& operations) {
  const std::string job = printable(facts.job);
  const std::string messages = messages_table(facts);
  if (operations.empty())
    return messages.empty() ? fmt::format("job '{}': no operation is pending\n", job) : messages;
  uint64_t pending = operations.size();
  for (const NodeFacts& node : facts.nodes) pending = std::max(pending, node.operations_pending);
  std::vector<std::vector<std::string>> rows = {
      {"WAITS", "OPERATION", "TENSOR", "STEP", "BYTES", "SUBMITTED BY", "MISSING"}};
  for (const PendingOperation& one : operations) {
    rows.push_back({format_time(to_seconds(one.since_ns)), printable(one.collective),
                    tensors_cell(one), std::to_string(one.step), format_amount(one.bytes),
                    format_ranks(one.submitted), missing_cell(one)});
  }
  std::string title =
      fmt::format("job '{}': {} pending", job,
                  pending == 1 ? "1 operation is" : fmt::format("{} operations are", pending));
  if (pending > operations.size())
    title += fmt::format("; the oldest {} that nodes tell of", operations.size());
  return title + "\n\n" + render_table(rows) + (messages.empty() ? "" : "\n" + messages);
}

}  // namespace braid
