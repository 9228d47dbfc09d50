// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"

namespace braid {

// What --job says where it may be left out.
inline constexpr const char* kJobHelp =
    "a job that runs on this node, or the beginning of its name (default: the only one)";

// Asks the daemon at the socket `path` which job is meant (explain/which_job.h): its whole name.
Result<std::string> find_job(const std::string& path, const std::string& given);

// For the answer about a job that was found and is not there.
Status job_has_ended(const std::string& name);

}  // namespace braid
