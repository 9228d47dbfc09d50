// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/contribution.h"

namespace braid {

// The local ranks' inputs where they lie in host memory, each in one piece or in several: reduce()
// goes from one border to the next.
class LocalInputs final : public Contribution {
 public:
  explicit LocalInputs(const Operation& operation);

  void reduce(const Extent& extent, const uint8_t* wire, uint8_t* out, Store store) override;
  void copy(const Extent& extent, uint8_t* out) override;
  const uint8_t* find(const Extent& extent) const override;

 private:
  const Operation& operation_;
  std::vector<const uint8_t*> operands_;  // kept, so that a chunk allocates nothing
  uint64_t first_block_ = 0;  // all-gather: where the local ranks' blocks start in the result
};

}  // namespace braid
