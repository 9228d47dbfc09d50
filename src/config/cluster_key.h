// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace braid {

// The secret in the file of control.cluster_key_file: its bytes without blanks and line ends around
// them: see load_secret_file. An empty path gives an empty key.
Result<std::vector<uint8_t>> load_cluster_key(const std::string& path);

}  // namespace braid
