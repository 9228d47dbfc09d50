// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"

namespace braid {

// Makes `path` hold `content`, whatever it held. Errors begin with the path; a full disk is one.
Status write_file(const std::string& path, const std::string& content);

}  // namespace braid
