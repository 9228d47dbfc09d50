// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace braid {

// "1.13.1": of the library that is loaded, which need not be the one that braid was built with.
std::string ucx_version();

}  // namespace braid
