// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"

namespace braid::bench {

// Lets kernels use the vectors of this name only: widest, avx2 or baseline.
Status choose_vectors(const std::string& vectors);

}  // namespace braid::bench
