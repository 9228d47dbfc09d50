// SPDX-License-Identifier: Apache-2.0
#include "config/cluster_key.h"

#include "base/read_file.h"
#include "config/value.h"

namespace braid {
namespace {

constexpr const char* kKey = "control.cluster_key_file";

Status explain(const Status& status, const std::string& path) {
  switch (status.code()) {
    case StatusCode::NotFound:
      return {status.code(),
              fmt::format("{}: {}: there is no such file; make one with (umask 077; openssl rand "
                          "-hex 32 > {}), and copy it to all nodes",
                          kKey, path, path)};
    case StatusCode::PermissionDenied:
      return {status.code(), fmt::format("{}; it must belong to the user that braidd runs as",
                                         status.with_context(kKey).message())};
    default:
      return status.with_context(kKey);
  }
}

}  // namespace

Result<std::vector<uint8_t>> load_cluster_key(const std::string& path) {
  if (path.empty()) return std::vector<uint8_t>{};
  struct stat info {};
  const auto content = read_file(path, kClusterKeyBytesMax, &info);
  if (!content) return explain(content.status(), path);
  if (!S_ISREG(info.st_mode)) {
    return make_status(StatusCode::InvalidArgument, "{}: {}: is not a regular file", kKey, path);
  }
  if ((info.st_mode & 077) != 0) {
    return make_status(StatusCode::PermissionDenied,
                       "{}: {}: others than its owner may use it (mode {}); run: chmod 600 {}",
                       kKey, path, format_mode(info.st_mode & 0777), path);
  }
  const std::string_view key = trim(*content);
  if (key.size() < kClusterKeyBytesMin) {
    return make_status(
        StatusCode::InvalidArgument,
        "{}: {}: has {} bytes; use {} or more, such as those of openssl rand -hex 32", kKey, path,
        key.size(), kClusterKeyBytesMin);
  }
  return std::vector<uint8_t>(key.begin(), key.end());
}

}  // namespace braid
