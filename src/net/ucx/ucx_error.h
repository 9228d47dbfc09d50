// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <ucs/type/status.h>

#include "base/status.h"

namespace braid {

// "<what>: <UCX's sentence>", with the code that fits and UCX's own number as the cause. UCX has no
// error of its own for a process that has no descriptors left: it is looked for, and told.
Status status_from_ucx(ucs_status_t error, std::string_view what);

}  // namespace braid
