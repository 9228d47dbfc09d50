// SPDX-License-Identifier: Apache-2.0
#include "job/operation_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "job/job.h"

namespace braid {
namespace {

std::string trouble_of_links(const Job& job, const Transport& transport) {
  const auto& nodes = job.membership().nodes;
  for (const LinkStatus& link : transport.link_statuses()) {
    const bool is_ours = std::ranges::any_of(
        nodes, [&](const MemberNode& node) { return node.peer.name == link.peer; });
    if (is_ours && !link.trouble.empty()) return link.trouble;
  }
  return {};
}

std::string what_it_did(uint32_t rank, const Session& session, const OperationKey& key,
                        const std::string& member) {
  const std::string last = session.last_operation();
  std::string text = last.empty() ? fmt::format("rank {} has submitted nothing yet", rank)
                                  : fmt::format("rank {} has last submitted {}", rank, last);
  if (!member.empty()) text += fmt::format(" and not '{}', which is merged with it", member);
  if (session.find_tensor(key.tensor) == nullptr) text += " and has not registered this tensor";
  return text;
}

}  // namespace

ControlBuffer report_operation(const OperationKey& key, const Job& job,
                               const Transport& transport) {
  const std::vector<uint32_t> missing = job.operations()->log().missing_ranks(key);
  if (missing.empty()) return make_operation_report(key, missing, trouble_of_links(job, transport));
  const std::vector<uint32_t>& local_ranks = job.membership().local_ranks;
  for (const uint32_t rank : missing) {
    const Session* session =
        job.sessions()[std::ranges::find(local_ranks, rank) - local_ranks.begin()];
    if (session == nullptr) continue;
    return make_operation_report(
        key, missing,
        what_it_did(rank, *session, key, job.operations()->log().first_missing(key, rank)));
  }
  return make_operation_report(key, missing, "");
}

}  // namespace braid
