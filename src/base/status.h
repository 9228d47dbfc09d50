// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace braid {

// The numbers are those of braid_error in braid.h: they cross the client socket and the done ring.
enum class StatusCode : uint8_t {
  Ok = 0,
  InvalidArgument = 1,
  NotFound = 2,
  AlreadyExists = 3,
  PermissionDenied = 4,
  Unavailable = 5,
  DeadlineExceeded = 6,
  ResourceExhausted = 7,
  Mismatch = 8,
  JobFailed = 9,
  Protocol = 10,
  Cancelled = 11,
  Internal = 12,
};
inline constexpr uint8_t kStatusCodeMax = 12;

const char* status_code_name(StatusCode code);

// The outcome of a fallible call: a code, a sentence for people, and the number that the cause
// itself gave (errno, a negative libuv error, a ucs_status_t), 0 if there was none. Cheap when Ok.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message, int cause = 0)
      : code_(code), cause_(cause), message_(std::move(message)) {}

  static Status ok() { return {}; }

  // "<what>: <strerror(error)>", with the code that fits `error` (an errno value).
  static Status from_errno(int error, std::string_view what);
  // The same for a negative libuv error.
  static Status from_uv(int error, std::string_view what);

  bool is_ok() const { return code_ == StatusCode::Ok; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  int cause() const { return cause_; }

  // "MISMATCH: tensor 'a' …"
  std::string to_string() const;
  // The same status with `context` and a colon in front of its message.
  Status with_context(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::Ok;
  int cause_ = 0;
  std::string message_;
};

template <typename... Args>
Status make_status(StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

// A value or the status that explains its absence.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : value_(std::move(value)) {}  // NOLINT: implicit on purpose, as in `return value;`
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit on purpose
    BRAID_ASSERT(!status_.is_ok(), "a Result without a value needs an error");
  }

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }

  T& value() & {
    BRAID_ASSERT(value_.has_value(), status_.message().c_str());
    return *value_;
  }
  const T& value() const& {
    BRAID_ASSERT(value_.has_value(), status_.message().c_str());
    return *value_;
  }
  T&& value() && {
    BRAID_ASSERT(value_.has_value(), status_.message().c_str());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace braid

// Returns from the calling function if `expression`, a Status, is an error.
#define BRAID_RETURN_IF_ERROR(expression)                                                   \
  do {                                                                                      \
    if (::braid::Status braid_status_ = (expression); !braid_status_) return braid_status_; \
  } while (false)
