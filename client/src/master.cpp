// SPDX-License-Identifier: Apache-2.0
#include "master.h"

#include <cstring>

#include "connection.h"

namespace braid::client {
namespace {

constexpr uint32_t kMasterTimeoutMs = 10'000;

}  // namespace

Status find_master(const char* socket_path, uint32_t timeout_ms, char* address, size_t bytes,
                   uint64_t* node) {
  if (address == nullptr) return Status(StatusCode::InvalidArgument, "address is NULL");
  if (node == nullptr) return Status(StatusCode::InvalidArgument, "node is NULL");
  const uint64_t timeout = timeout_ms != 0 ? timeout_ms : kMasterTimeoutMs;
  Connection connection;
  BRAID_RETURN_IF_ERROR(
      connection.open(socket_path_of(socket_path), now_ns() + timeout * 1'000'000));
  const std::string& found = connection.daemon_address();
  if (found.empty()) {
    return make_status(StatusCode::NotFound,
                       "braidd at '{}' is too old to say where other nodes reach it: upgrade it",
                       connection.path());
  }
  if (found.size() >= bytes) {
    return make_status(StatusCode::InvalidArgument, "address has {} bytes; '{}' takes {}", bytes,
                       found, found.size() + 1);
  }
  std::memcpy(address, found.c_str(), found.size() + 1);
  *node = connection.daemon_node();
  return {};
}

}  // namespace braid::client
