// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace braid {

inline constexpr size_t kSecretBytesMin = 16;
inline constexpr size_t kSecretBytesMax = 4096;

// The secret in the file at `path`, the value of the configuration key `key`: its bytes without
// blanks and line ends around them. The file must belong to root or to this process's user, and be
// closed to group and others. Errors name the key; `where` says where copies of the file are wanted
// ("copy it to all nodes"), or is empty.
Result<std::vector<uint8_t>> load_secret_file(std::string_view key, const std::string& path,
                                              std::string_view where);

// Reads the file that page.access names. A token that an HTTP header cannot carry is refused.
Result<std::vector<uint8_t>> load_page_token(const std::string& path);

}  // namespace braid
