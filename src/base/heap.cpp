// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <malloc.h>

namespace braid {

void settle_heap() {
  constexpr int kMiB = 1 << 20;
  // The other heaps that malloc makes for threads grow by a page and one mprotect() at a time.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TOP_PAD, 64 * kMiB);
  ::mallopt(M_TRIM_THRESHOLD, 256 * kMiB);
  ::mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // the largest that glibc takes
}

}  // namespace braid
