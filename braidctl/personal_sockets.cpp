// SPDX-License-Identifier: Apache-2.0
#include "braidctl/personal_sockets.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "client/status_client.h"
#include "config/personal.h"

namespace braid {

namespace fs = std::filesystem;

namespace {

bool is_other_meant(const std::string& named) {
  const char* said = std::getenv("BRAID_SOCKET");
  return !named.empty() || (said != nullptr && *said != '\0') ||
         ::access(daemon_socket_path("").c_str(), R_OK | W_OK) == 0;
}

}  // namespace

std::vector<std::string> personal_sockets(const std::string& named) {
  if (is_other_meant(named)) return {};
  std::vector<std::string> found;
  const auto look = [&found](const fs::path& folder) {
    std::error_code ignored;
    const fs::path socket = folder / kPersonalSocket;
    if (fs::is_socket(socket, ignored)) found.push_back(socket.string());
  };
  const fs::path base = personal_folder(std::getenv("XDG_RUNTIME_DIR"), ::getuid());
  struct stat info {};
  if (::lstat(base.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::getuid())
    return {};  // In /tmp anybody could have made it.
  look(base);
  // A run's own daemon has a folder of its own in there.
  std::error_code error;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end;
       entry.increment(error)) {
    look(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace braid
