// SPDX-License-Identifier: Apache-2.0
#include "config/personal.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

namespace braid {
namespace {

constexpr mode_t kOthersMode = S_IRWXG | S_IRWXO;

bool is_folder_of(const struct stat& info, uid_t user) {
  return S_ISDIR(info.st_mode) && info.st_uid == user && (info.st_mode & kOthersMode) == 0;
}

}  // namespace

std::string personal_folder(const char* runtime_directory, uid_t user) {
  struct stat info {};
  const bool is_his = runtime_directory != nullptr && *runtime_directory == '/' &&
                      ::lstat(runtime_directory, &info) == 0 && is_folder_of(info, user);
  return is_his ? fmt::format("{}/braid", runtime_directory) : fmt::format("/tmp/braid-{}", user);
}

Status make_personal_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return Status::from_errno(
        errno, fmt::format("cannot make the folder '{}' for a personal daemon", folder));
  }
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  // A folder that others have closed to this user can be looked at all the same.
  const bool is_known =
      opened.is_valid() ? ::fstat(opened.get(), &info) == 0 : ::lstat(folder.c_str(), &info) == 0;
  if (!is_known) return Status::from_errno(errno, fmt::format("the folder '{}'", folder));
  constexpr const char* kRemedy =
      "remove it, or set XDG_RUNTIME_DIR to a folder of yours that is closed to others (mode 0700)";
  if (!S_ISDIR(info.st_mode)) {
    return make_status(StatusCode::PermissionDenied,
                       "'{}', the folder of a personal daemon, is {} and no folder: {}", folder,
                       S_ISLNK(info.st_mode) ? "a link" : "a file", kRemedy);
  }
  if (info.st_uid != ::geteuid()) {
    return make_status(StatusCode::PermissionDenied,
                       "'{}', the folder of a personal daemon, belongs to user {}, who could get "
                       "at what is in it, and not to user {}: {}",
                       folder, info.st_uid, ::geteuid(), kRemedy);
  }
  if ((info.st_mode & kOthersMode) != 0) {
    return make_status(StatusCode::PermissionDenied,
                       "'{0}', the folder of a personal daemon, is open to others (mode {1:04o}); "
                       "run: chmod 700 {0}",
                       folder, info.st_mode & 07777);
  }
  return Status::ok();
}

DaemonConfig personal_defaults(const std::string& folder) {
  DaemonConfig config;
  config.client.socket = fmt::format("{}/{}", folder, kPersonalSocket);
  config.client.group.clear();
  config.control.port.reset();
  config.metrics.port.reset();
  return config;
}

}  // namespace braid
