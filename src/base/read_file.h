// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <sys/stat.h>

#include "base/status.h"

namespace braid {

// The content of a small file. Errors begin with the path. `info`, if given, describes the very
// file that was read.
Result<std::string> read_file(const std::string& path, size_t bytes_max,
                              struct stat* info = nullptr);

}  // namespace braid
