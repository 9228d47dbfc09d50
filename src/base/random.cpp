// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <cerrno>

#include <sys/random.h>

#include "base/assert.h"

namespace braid {

void fill_random(std::span<uint8_t> bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (n < 0 && errno == EINTR) continue;
    BRAID_ASSERT(n > 0, "getrandom cannot fail once the kernel is up");
    filled += static_cast<size_t>(n);
  }
}

uint64_t random_u64() {
  uint64_t value = 0;
  while (value == 0) fill_random({reinterpret_cast<uint8_t*>(&value), sizeof(value)});
  return value;
}

}  // namespace braid
