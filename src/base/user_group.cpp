// SPDX-License-Identifier: Apache-2.0
#include "base/user_group.h"

#include <vector>

#include <grp.h>

namespace braid {

Result<gid_t> find_client_group(const std::string& group) {
  ::group entry{};
  ::group* found = nullptr;
  std::vector<char> buffer(64 * 1024);  // a group with many members is a long line
  const int error = ::getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return entry.gr_gid;
  if (error != 0)
    return Status::from_errno(error, fmt::format("cannot look up the group '{}'", group));
  return make_status(
      StatusCode::NotFound,
      "the group '{}' does not exist; make it (groupadd --system {}) or set client.group "
      "(\"\": the daemon's own group)",
      group, group);
}

}  // namespace braid
