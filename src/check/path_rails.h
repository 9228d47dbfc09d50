// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "check/path_facts.h"

namespace braid {

// What the kernel says of a rail now: the address of its flows, MTU and link speed, as far as it is
// a network device. Some microseconds.
PathEnd::Rail describe_rail(const std::string& name, bool is_up, const std::string& node_address);

}  // namespace braid
