// SPDX-License-Identifier: Apache-2.0
#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace braid {

void assertion_failed(const char* condition, const char* message, const char* file, int line) {
  std::fprintf(stderr, "braid: bug: %s:%d: '%s' does not hold: %s\n", file, line, condition,
               message);
  std::abort();
}

}  // namespace braid
