// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <sys/stat.h>

#include "base/status.h"

namespace braid {

// The content of a small file, or of a pipe. Errors begin with the path. `info`, if given,
// describes the very file that was read: for a caller that takes regular files alone, so a pipe is
// then not waited for.
Result<std::string> read_file(const std::string& path, size_t bytes_max,
                              struct stat* info = nullptr);

}  // namespace braid
