// SPDX-License-Identifier: Apache-2.0
#include "braidctl/daemon_source.h"

#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/socket_address.h"
#include "metrics/status.h"

namespace braid {
namespace {

using SourceJson = nlohmann::ordered_json;

}  // namespace

Result<std::string> DaemonSource::status(uint32_t timeout_ms) const {
  return page_ ? get_page(*page_, "/api/status", timeout_ms) : query_status(socket_, timeout_ms);
}

Result<JobsReply> DaemonSource::plans(const std::string& job, uint32_t timeout_ms) const {
  return page_ ? page_arrays(job, "plan", timeout_ms) : query_plans(socket_, job, timeout_ms);
}

Result<JobsReply> DaemonSource::facts(const std::string& job, uint32_t timeout_ms) const {
  return page_ ? page_arrays(job, "steps", timeout_ms) : query_facts(socket_, job, timeout_ms);
}

Result<std::string> DaemonSource::socket(const std::string& command) const {
  if (!page_) return socket_;
  return make_status(StatusCode::InvalidArgument,
                     "braidctl {0} needs the daemon's socket, and --host reads its page: run it on "
                     "the node (ssh {1} braidctl {0}); status, jobs, top, flows, explain, pending, "
                     "and plan, fit and advise with --job, go through the page",
                     command, page_->host);
}

Result<JobsReply> DaemonSource::page_arrays(const std::string& job, const std::string& answer,
                                            uint32_t timeout_ms) const {
  JobsReply reply;
  std::set<std::string> names = {job};
  if (job.empty()) {
    const auto json = status(timeout_ms);
    if (!json) return json.status();
    const auto told = parse_status(*json);
    if (!told) return told.status();
    names.clear();
    for (const DaemonStatus::Job& one : told->jobs) names.insert(one.name);
    reply.jobs_hidden = told->jobs_hidden;
  }
  SourceJson all = SourceJson::array();
  for (const std::string& name : names) {
    const auto json =
        get_page(*page_, "/api/jobs/" + as_path_part(name) + "/" + answer, timeout_ms);
    // Over meanwhile, or never known: the answer has nothing of it, as that of the socket.
    if (!json && json.status().code() == StatusCode::NotFound) continue;
    if (!json) return json.status();
    SourceJson part = SourceJson::parse(*json, nullptr, false);
    if (!part.is_array()) {
      return make_status(StatusCode::Protocol, "what listens at {} is no page of braidd",
                         host_and_port(page_->host, page_->port));
    }
    for (SourceJson& one : part) all.push_back(std::move(one));
  }
  reply.json = all.dump(-1, ' ', false, SourceJson::error_handler_t::replace);
  return reply;
}

}  // namespace braid
