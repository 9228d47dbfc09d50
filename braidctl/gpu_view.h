// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "metrics/status.h"

namespace braid {

// What `braidctl status` prints of the node's GPUs: a table, and below it what is wrong. Empty: it
// has none.
std::string render_gpus(const DaemonStatus& status);

}  // namespace braid
