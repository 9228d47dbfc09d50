// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace braid {

// Which pages of a memory are known to be there for good, so that nobody need ask the kernel for
// them again. It knows of a memory's first gibibyte only. One thread at a time.
class KnownPages {
 public:
  // Whether all pages of [offset, offset + bytes) are known; the sum must not overflow.
  bool has(uint64_t offset, uint64_t bytes) const;
  void add(uint64_t offset, uint64_t bytes);

 private:
  std::vector<uint64_t> words_;  // a bit for each page, up to the highest that is known
};

}  // namespace braid
