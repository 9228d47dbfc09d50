// SPDX-License-Identifier: Apache-2.0
#include "daemon_user.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace braid::client {
namespace {

constexpr const char* kServiceUser = "braid";
constexpr const char* kAllowedVariable = "BRAID_DAEMON_UID";

std::optional<uid_t> service_user() {
  ::passwd entry{};
  ::passwd* found = nullptr;
  std::vector<char> buffer(16 * 1024);
  ::getpwnam_r(kServiceUser, &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::nullopt : std::optional(entry.pw_uid);
}

Status read_allowed_user(std::optional<uid_t>& user) {
  const char* given = std::getenv(kAllowedVariable);
  const std::string_view text = given == nullptr ? "" : given;
  if (text.empty()) return {};
  uid_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) {
    return make_status(
        StatusCode::InvalidArgument,
        "{} is '{}'; set it to the number of the user that braidd runs as, such as 998",
        kAllowedVariable, text);
  }
  user = number;
  return {};
}

}  // namespace

Status check_daemon_user(int socket, const std::string& path) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return Status::from_errno(errno, "SO_PEERCRED");
  std::optional<uid_t> allowed;
  BRAID_RETURN_IF_ERROR(read_allowed_user(allowed));
  if (peer.uid == 0 || peer.uid == ::geteuid() || peer.uid == allowed) return {};
  const std::optional<uid_t> service = service_user();
  if (peer.uid == service) return {};
  return make_status(StatusCode::PermissionDenied,
                     "the process that listens on '{}' runs as user {} and is not taken for "
                     "braidd, which runs as root, as the user '{}' ({}) or as this process's user, "
                     "{}; if it is braidd (a container may see other user numbers), set {}={}",
                     path, peer.uid, kServiceUser,
                     service ? std::to_string(*service) : "there is none here", ::geteuid(),
                     kAllowedVariable, peer.uid);
}

}  // namespace braid::client
