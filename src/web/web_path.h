// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

// The parts of a path between its slashes, each with its %XX decoded: "/a/b%2Fc" → "a", "b/c"; "/"
// has none. Nothing: it does not begin with a slash, or a % has no two hexadecimal digits behind
// it.
std::optional<std::vector<std::string>> split_path(std::string_view path);

// What `path` has where `pattern` ("/api/jobs/NAME/steps") has NAME; nothing: it does not fit.
std::optional<std::vector<std::string>> match_path(std::string_view pattern,
                                                   const std::vector<std::string>& path);

// The number that `query` ("a=1&steps=5") gives for `name`, within these limits; `usual` where it
// gives none.
uint32_t query_number(std::string_view query, std::string_view name, uint32_t usual, uint32_t min,
                      uint32_t max);

// The name or address in a Host header, without port and in small letters: "Node1:9431" → "node1",
// "[::1]:9431" → "::1".
std::string host_name(std::string_view header);

// Whether it is the text of an IPv4 or IPv6 address.
bool is_numeric_address(const std::string& host);

}  // namespace braid
