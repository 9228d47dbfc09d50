// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/types.h"

namespace braid {

// Tensors that a plan merges into one all-reduce, one after the other. On all nodes the group's
// operation goes by its first tensor's hash and the step; `hash` is part of its signature.
struct TensorGroup {
  struct Member {
    uint64_t tensor = 0;  // hash of its name
    std::shared_ptr<const std::string> name;
    uint64_t count = 0;
    uint64_t offset = 0;         // bytes, in the operation
    uint64_t first_element = 0;  // among those of the set with the same codec
    uint64_t first_in_set = 0;
  };
  std::vector<Member> members;
  DataType dtype = DataType::Float32;
  uint64_t count = 0;       // elements of all members
  uint64_t hash = 0;        // over all members; 0 where there is but one
  uint32_t last_place = 0;  // in the order of backward: of the member that comes last there
};

}  // namespace braid
