// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace braid {

// The name of the job that is meant by `given`: that name itself, its beginning if only one job's
// name begins so, or nothing if only one job runs. `running`: the names of the jobs on the node
// that the person who asks may see, in any order; a name may be there twice. Errors list them.
Result<std::string> which_job(std::vector<std::string> running, const std::string& given);

}  // namespace braid
