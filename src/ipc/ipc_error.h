// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace braid {

// Why something between trainer and daemon failed. The files that libbraid shares with the daemon
// (segment, rings, frames, extent_allocator) speak this instead of Status, because libbraid links
// neither fmt nor libuv; ipc_status.h translates.
struct [[nodiscard]] IpcError {
  int cause = 0;        // an errno value; EPROTO: the other side sent what makes no sense
  std::string message;  // a sentence; empty: no error

  bool is_ok() const { return message.empty(); }
  explicit operator bool() const { return is_ok(); }

  // "<what>: <strerror(error)>"
  static IpcError from_errno(int error, const std::string& what);
};

// `value` counts only without an error.
template <typename T>
struct [[nodiscard]] IpcResult {
  T value{};
  IpcError error;

  explicit operator bool() const { return error.is_ok(); }
};

}  // namespace braid
