// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <utility>

#include "base/status.h"
#include "ipc/ipc_error.h"

namespace braid {

// The daemon's side speaks Status.
inline Status to_status(IpcError error) {
  if (error.is_ok()) return Status::ok();
  const StatusCode code =
      error.cause == EPROTO ? StatusCode::Protocol : Status::from_errno(error.cause, "").code();
  return {code, std::move(error.message), error.cause};
}

template <typename T>
Result<T> to_result(IpcResult<T> result) {
  if (!result.error.is_ok()) return to_status(std::move(result.error));
  return std::move(result.value);
}

}  // namespace braid
