// SPDX-License-Identifier: Apache-2.0
#include "last_refusal.h"

namespace braid::client {
namespace {

constexpr size_t kRefusalBytesMax = 1000;

// An error of this rank's question alone: the job goes on.
bool is_refusal(const Status& status) {
  switch (status.code()) {
    case StatusCode::InvalidArgument:
    case StatusCode::NotFound:
    case StatusCode::AlreadyExists:
    case StatusCode::PermissionDenied:
    case StatusCode::ResourceExhausted:
    case StatusCode::Mismatch:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status LastRefusal::note(Status answer) {
  if (answer.is_ok() && !is_refused_.load(std::memory_order_relaxed)) return answer;
  const std::lock_guard lock(mutex_);
  text_ = is_refusal(answer) ? answer.message().substr(0, kRefusalBytesMax) : std::string();
  is_refused_.store(!text_.empty(), std::memory_order_relaxed);
  return answer;
}

std::string LastRefusal::add_to(std::string reason) const {
  if (!is_refused_.load(std::memory_order_relaxed)) return reason;
  const std::lock_guard lock(mutex_);
  if (reason.find(text_) == std::string::npos)
    reason += fmt::format("{}it was refused: {}", reason.empty() ? "" : "; ", text_);
  return reason;
}

}  // namespace braid::client
