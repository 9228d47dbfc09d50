// SPDX-License-Identifier: Apache-2.0
#include "job/investigation.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace braid {

Investigation::Investigation(Loop& loop, const proto::OperationOverdue& overdue,
                             std::vector<MemberNode> nodes, std::function<void(Status)> done)
    : key_{overdue.job_key(), overdue.tensor(), overdue.step()},
      description_(overdue.description()->str()),
      timeout_ms_(overdue.timeout_ms()),
      nodes_(std::move(nodes)),
      done_(std::move(done)),
      deadline_(loop) {
  deadline_.start_once(kAnswerTimeoutMs, [this] { conclude(); });
}

void Investigation::on_report(NodeId from, const proto::OperationReport& report) {
  const bool is_member = std::any_of(nodes_.begin(), nodes_.end(), [from](const MemberNode& node) {
    return node.peer.id == from;
  });
  if (!is_member || !done_) return;
  Answer answer;
  if (report.missing_ranks() != nullptr) {
    answer.missing_ranks.assign(report.missing_ranks()->begin(), report.missing_ranks()->end());
  }
  if (report.detail() != nullptr) answer.detail = report.detail()->str();
  answers_[from] = std::move(answer);
  if (answers_.size() == nodes_.size()) conclude();
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
    causes.emplace_back("all ranks have submitted it, but the network has not finished it");
  const auto done = std::move(done_);
  done_ = nullptr;
  done(make_status(StatusCode::DeadlineExceeded, "{} did not end within {} ms: {}", description_,
                   timeout_ms_, fmt::join(causes, "; ")));
}

}  // namespace braid
