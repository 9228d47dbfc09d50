// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <braid.h>

namespace braid::client {
namespace {

constexpr size_t kMessageBytes = 2048;
// Not a std::string: reporting must not need memory, and threads may end after the library's
// destructors ran.
thread_local char last_text[kMessageBytes] = "";

constexpr bool is_same(StatusCode code, braid_error error) {
  return static_cast<int>(code) == static_cast<int>(error);
}
static_assert(is_same(StatusCode::Ok, BRAID_OK));
static_assert(is_same(StatusCode::InvalidArgument, BRAID_ERROR_INVALID_ARGUMENT));
static_assert(is_same(StatusCode::NotFound, BRAID_ERROR_NOT_FOUND));
static_assert(is_same(StatusCode::AlreadyExists, BRAID_ERROR_ALREADY_EXISTS));
static_assert(is_same(StatusCode::PermissionDenied, BRAID_ERROR_PERMISSION_DENIED));
static_assert(is_same(StatusCode::Unavailable, BRAID_ERROR_UNAVAILABLE));
static_assert(is_same(StatusCode::DeadlineExceeded, BRAID_ERROR_DEADLINE_EXCEEDED));
static_assert(is_same(StatusCode::ResourceExhausted, BRAID_ERROR_RESOURCE_EXHAUSTED));
static_assert(is_same(StatusCode::Mismatch, BRAID_ERROR_MISMATCH));
static_assert(is_same(StatusCode::JobFailed, BRAID_ERROR_JOB_FAILED));
static_assert(is_same(StatusCode::Protocol, BRAID_ERROR_PROTOCOL));
static_assert(is_same(StatusCode::Cancelled, BRAID_ERROR_CANCELLED));
static_assert(is_same(StatusCode::Internal, BRAID_ERROR_INTERNAL));
static_assert(kStatusCodeMax == BRAID_ERROR_INTERNAL);

}  // namespace

int report(const Status& status) noexcept {
  if (status.is_ok()) return BRAID_OK;
  const size_t length = std::min(status.message().size(), kMessageBytes - 1);
  std::memcpy(last_text, status.message().data(), length);
  last_text[length] = '\0';
  return static_cast<int>(status.code());
}

int report_out_of_memory() noexcept {
  std::strcpy(last_text, "the process is out of memory");
  return BRAID_ERROR_RESOURCE_EXHAUSTED;
}

int report_bug(const char* what) noexcept {
  std::snprintf(last_text, kMessageBytes, "a bug in libbraid: %s", what);
  return BRAID_ERROR_INTERNAL;
}

const char* last_message() noexcept { return last_text; }

}  // namespace braid::client
