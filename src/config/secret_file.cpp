// SPDX-License-Identifier: Apache-2.0
#include "config/secret_file.h"

#include <algorithm>

#include <unistd.h>

#include "base/read_file.h"
#include "config/value.h"

namespace braid {
namespace {

constexpr const char* kTokenKey = "page.access";

Status explain(const Status& status, std::string_view key, const std::string& path,
               std::string_view where) {
  switch (status.code()) {
    case StatusCode::NotFound:
      return {status.code(),
              fmt::format("{}: {}: there is no such file; make one with (umask 077; openssl rand "
                          "-hex 32 > {}){}{}",
                          key, path, path, where.empty() ? "" : ", and ", where)};
    case StatusCode::PermissionDenied:
      return {status.code(), fmt::format("{}; it must belong to the user that braidd runs as",
                                         status.with_context(key).message())};
    default:
      return status.with_context(key);
  }
}

}  // namespace

Result<std::vector<uint8_t>> load_secret_file(std::string_view key, const std::string& path,
                                              std::string_view where) {
  struct stat info {};
  const auto content = read_file(path, kSecretBytesMax, &info);
  if (!content) return explain(content.status(), key, path, where);
  if (!S_ISREG(info.st_mode)) {
    return make_status(StatusCode::InvalidArgument, "{}: {}: is not a regular file", key, path);
  }
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return make_status(StatusCode::PermissionDenied,
                       "{0}: {1}: belongs to user {2}, who can read and change it; it must belong "
                       "to user {3}, as which braidd runs, or to root; run: chown {3} {1}",
                       key, path, info.st_uid, ::geteuid());
  }
  if ((info.st_mode & 077) != 0) {
    return make_status(StatusCode::PermissionDenied,
                       "{}: {}: others than its owner may use it (mode {:04o}); run: chmod 600 {}",
                       key, path, info.st_mode & 0777, path);
  }
  const std::string_view secret = trim(*content);
  if (secret.size() < kSecretBytesMin) {
    return make_status(
        StatusCode::InvalidArgument,
        "{}: {}: has {} bytes; use {} or more, such as those of openssl rand -hex 32", key, path,
        secret.size(), kSecretBytesMin);
  }
  return std::vector<uint8_t>(secret.begin(), secret.end());
}

Result<std::vector<uint8_t>> load_page_token(const std::string& path) {
  auto token = load_secret_file(kTokenKey, path, "");
  if (!token) return token;
  const bool is_text = std::all_of(token->begin(), token->end(),
                                   [](uint8_t byte) { return byte > ' ' && byte < 0x7f; });
  if (is_text) return token;
  return make_status(StatusCode::InvalidArgument,
                     "{}: {}: has other characters than letters, digits and signs; use those of "
                     "openssl rand -hex 32",
                     kTokenKey, path);
}

}  // namespace braid
