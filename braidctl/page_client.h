// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace braid {

inline constexpr uint16_t kUsualPagePort = 9431;

// Where a daemon's page is, and what opens it.
struct PageAddress {
  std::string host;  // name or address
  uint16_t port = kUsualPagePort;
  std::string token;  // empty: none is given
};

// What the page answers to GET `path`, such as "/api/status". Blocks, at most `timeout_ms`, but for
// the look-up of the name. Errors name the host and say what to do: Unavailable: nobody answers
// there. PermissionDenied: the token is missing or wrong. NotFound: the daemon knows no such path,
// or no such job.
Result<std::string> get_page(const PageAddress& page, const std::string& path, uint32_t timeout_ms);

// A name as a part of a path: "a/b" becomes "a%2Fb".
std::string as_path_part(const std::string& name);

// The token in `file`; where that is empty, in the environment's `variable`, which may be nullptr.
// Empty: none is given. InvalidArgument: no header can carry it.
Result<std::string> read_page_token(const std::string& file, const char* variable);

}  // namespace braid
