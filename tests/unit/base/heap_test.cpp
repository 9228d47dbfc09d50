// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace braid {
namespace {

// Bytes of the mapping that `address` is in, as /proc tells; 0: none that may be written.
uint64_t writable_bytes_around(uintptr_t place) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char read = 0;
    char write = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %c%c", &begin, &end, &read, &write) != 4) continue;
    if (begin <= place && place < end) return write == 'w' ? end - begin : 0;
  }
  return 0;
}

TEST(HeapTest, AThreadsHeapIsWholeAtOnce) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers bring a malloc of their own";
#endif
  settle_heap();
  uint64_t bytes = 0;
  std::thread([&bytes] {
    // NOLINTNEXTLINE: it is malloc that is tested
    void* const first = std::malloc(100);
    bytes = writable_bytes_around(reinterpret_cast<uintptr_t>(first));
    std::free(first);  // NOLINT
  }).join();
  EXPECT_GE(bytes, 32u << 20);
}

}  // namespace
}  // namespace braid
