// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace braid {

// Text from elsewhere, fit for a terminal or a line of a log: control characters become '?'. UTF-8
// stays as it is.
std::string printable(std::string text);

}  // namespace braid
