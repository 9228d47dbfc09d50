// SPDX-License-Identifier: Apache-2.0
#include "coordinator/investigation.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/ranges.h>

namespace braid {
namespace {

constexpr size_t kDetailBytesMax = 4096;  // goes to every trainer of the job
constexpr size_t kTroublesMax = 3;        // of links, that are told

}  // namespace

Investigation::Investigation(Loop& loop, const proto::OperationOverdue& overdue,
                             std::vector<MemberNode> nodes, std::function<void(Status)> done)
    : key_{overdue.job_key(), overdue.tensor(), overdue.step()},
      description_(overdue.description()->str().substr(0, kDetailBytesMax)),
      timeout_ms_(overdue.timeout_ms()),
      nodes_(std::move(nodes)),
      done_(std::move(done)),
      deadline_(loop) {
  deadline_.start_once(kAnswerTimeoutMs, [this] { conclude(); });
}

void Investigation::on_report(NodeId from, const proto::OperationReport& report) {
  const auto node = std::find_if(nodes_.begin(), nodes_.end(),
                                 [from](const MemberNode& one) { return one.peer.id == from; });
  if (node == nodes_.end() || !done_) return;
  Answer answer;
  // A node can speak for its own ranks only.
  if (report.missing_ranks() != nullptr) {
    const std::set<uint32_t> said(report.missing_ranks()->begin(), report.missing_ranks()->end());
    std::copy_if(node->ranks.begin(), node->ranks.end(), std::back_inserter(answer.missing_ranks),
                 [&](uint32_t rank) { return said.contains(rank); });
  }
  if (report.detail() != nullptr) answer.detail = report.detail()->str().substr(0, kDetailBytesMax);
  answers_[from] = std::move(answer);
  if (answers_.size() == nodes_.size()) conclude();
}

// What nodes whose ranks have all submitted it know about their links.
std::string Investigation::troubles() const {
  std::string text;
  size_t told = 0;
  for (const MemberNode& node : nodes_) {
    const auto answer = answers_.find(node.peer.id);
    if (answer == answers_.end() || answer->second.detail.empty() || told == kTroublesMax) continue;
    text += fmt::format("{}node '{}' says: {}", told++ == 0 ? ": " : "; ", node.peer.name,
                        answer->second.detail);
  }
  return text;
}

void Investigation::conclude() {
  if (!done_) return;
  std::vector<std::string> causes;
  for (const MemberNode& node : nodes_) {
    const auto answer = answers_.find(node.peer.id);
    if (answer == answers_.end()) {
      causes.push_back(
          fmt::format("node '{}' ({}) does not answer", node.peer.name, node.peer.address));
    } else if (!answer->second.missing_ranks.empty()) {
      causes.push_back(fmt::format("not submitted by rank {} on node '{}'{}{}",
                                   fmt::join(answer->second.missing_ranks, ", "), node.peer.name,
                                   answer->second.detail.empty() ? "" : ": ",
                                   answer->second.detail));
    }
  }
  if (causes.empty())
    causes.push_back("all ranks have submitted it, but the network has not finished it" +
                     troubles());
  const auto done = std::move(done_);
  done_ = nullptr;
  done(make_status(StatusCode::DeadlineExceeded, "{} did not end within {} ms: {}", description_,
                   timeout_ms_, fmt::join(causes, "; ")));
}

}  // namespace braid
