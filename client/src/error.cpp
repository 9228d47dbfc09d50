// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace braid::client {
namespace {

constexpr size_t kMessageBytes = 2048;
// Not a std::string: reporting must not need memory, and threads may end after the library's
// destructors ran.
thread_local char message[kMessageBytes] = "";

}  // namespace

Error from_ipc(const IpcError& error) {
  switch (error.cause) {
    case EPROTO:
      return {BRAID_ERROR_PROTOCOL, error.message};
    case EINVAL:
      return {BRAID_ERROR_INVALID_ARGUMENT, error.message};
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case EDQUOT:
    case EFBIG:
      return {BRAID_ERROR_RESOURCE_EXHAUSTED, error.message};
    case EACCES:
    case EPERM:
      return {BRAID_ERROR_PERMISSION_DENIED, error.message};
    case EPIPE:
    case ECONNRESET:
      return {BRAID_ERROR_UNAVAILABLE, error.message};
    default:
      return {BRAID_ERROR_INTERNAL, error.message};
  }
}

int report(const Error& error) noexcept {
  if (error.is_ok()) return BRAID_OK;
  const size_t length = std::min(error.text.size(), kMessageBytes - 1);
  std::memcpy(message, error.text.data(), length);
  message[length] = '\0';
  return error.code;
}

int report_out_of_memory() noexcept {
  std::strcpy(message, "the process is out of memory");
  return BRAID_ERROR_RESOURCE_EXHAUSTED;
}

int report_bug(const char* what) noexcept {
  std::snprintf(message, kMessageBytes, "a bug in libbraid: %s", what);
  return BRAID_ERROR_INTERNAL;
}

const char* last_message() noexcept { return message; }

}  // namespace braid::client
