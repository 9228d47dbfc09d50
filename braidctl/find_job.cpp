// SPDX-License-Identifier: Apache-2.0
#include "braidctl/find_job.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "braidctl/status_view.h"
#include "client/status_client.h"
#include "explain/which_job.h"
#include "metrics/status.h"

namespace braid {
namespace {

constexpr uint32_t kNamesTimeoutMs = 5000;

}  // namespace

Result<std::string> find_job(const std::string& path, const std::string& given) {
  const auto json = query_status(path, kNamesTimeoutMs);
  if (!json) return json.status();
  const auto status = parse_status(*json);
  if (!status) return status.status();
  std::vector<std::string> names;
  for (const DaemonStatus::Job& job : status->jobs) names.push_back(job.name);
  auto found = which_job(std::move(names), given);
  if (found || status->jobs_hidden == 0) return found;
  return Status(found.status().code(), found.status().message() + hidden_note(status->jobs_hidden));
}

Status job_has_ended(const std::string& name) {
  return make_status(StatusCode::NotFound, "job '{}' has ended on this node", printable(name));
}

}  // namespace braid
