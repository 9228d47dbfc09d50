// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <malloc.h>

namespace braid {

void settle_heap() {
  constexpr int kMiB = 1 << 20;
  // Also of the heap that each thread gets; without this such a heap grows by a page at a time.
  ::mallopt(M_TOP_PAD, 32 * kMiB);
  ::mallopt(M_TRIM_THRESHOLD, 256 * kMiB);
  ::mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // the largest that glibc takes
}

}  // namespace braid
