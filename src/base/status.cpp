// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cerrno>
#include <cstring>

#include "base/descriptor_table.h"

namespace braid {
namespace {

StatusCode code_of_errno(int error) {
  switch (error) {
    case ENOENT:
      return StatusCode::NotFound;
    case EEXIST:
    case EADDRINUSE:
      return StatusCode::AlreadyExists;
    case EACCES:
    case EPERM:
      return StatusCode::PermissionDenied;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return StatusCode::Unavailable;
    case ETIMEDOUT:
      return StatusCode::DeadlineExceeded;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case EDQUOT:
    case EFBIG:
      return StatusCode::ResourceExhausted;
    case ECANCELED:
      return StatusCode::Cancelled;
    case EINVAL:
      return StatusCode::InvalidArgument;
    default:
      return StatusCode::Internal;
  }
}

// What the number alone does not tell: which limit was met, and where it is set.
std::string advice_on(int error) {
  if (error == EMFILE) {
    return fmt::format(": this process has no file descriptors left (limit {})",
                       descriptor_limit_text());
  }
  if (error == ENFILE) return ": this machine has no file descriptors left (sysctl fs.file-max)";
  return {};
}

}  // namespace

const char* status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::Ok:
      return "OK";
    case StatusCode::InvalidArgument:
      return "INVALID_ARGUMENT";
    case StatusCode::NotFound:
      return "NOT_FOUND";
    case StatusCode::AlreadyExists:
      return "ALREADY_EXISTS";
    case StatusCode::PermissionDenied:
      return "PERMISSION_DENIED";
    case StatusCode::Unavailable:
      return "UNAVAILABLE";
    case StatusCode::DeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case StatusCode::ResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case StatusCode::Mismatch:
      return "MISMATCH";
    case StatusCode::JobFailed:
      return "JOB_FAILED";
    case StatusCode::Protocol:
      return "PROTOCOL";
    case StatusCode::Cancelled:
      return "CANCELLED";
    case StatusCode::Internal:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

Status Status::from_errno(int error, std::string_view what) {
  // Not strerror(): libbraid is called by threads of other people's programs.
  char buffer[128];
  return {
      code_of_errno(error),
      fmt::format("{}: {}{}", what, ::strerror_r(error, buffer, sizeof(buffer)), advice_on(error)),
      error};
}

std::string Status::to_string() const {
  if (is_ok()) return "OK";
  return fmt::format("{}: {}", status_code_name(code_), message_);
}

Status Status::with_context(std::string_view context) const {
  return {code_, fmt::format("{}: {}", context, message_), cause_};
}

}  // namespace braid
