// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/splits.h"
#include "messages/signature.h"

namespace braid {

// What one local rank says of one operation.
struct Submission {
  uint32_t local_rank = 0;  // place among the node's ranks of the job
  uint64_t ticket = 0;
  uint64_t tensor = 0;  // hash of its name
  uint64_t step = 0;
  std::shared_ptr<const std::string> name;  // of the tensor
  Signature signature;                      // of the tensor by itself
  UpdateStep update;                        // what the owners of a planned tensor are to do
  const uint8_t* input = nullptr;           // mapped
  // That were checked to be there, of what the rank itself has registered.
  uint64_t input_bytes = 0;
  // Gather, scatter, all-to-all: how `input` is split, and what the rank gets.
  std::shared_ptr<const Splits> splits;
  uint64_t submitted_ns = 0;
  uint64_t deadline_ns = 0;
  uint32_t timeout_ms = 0;
};

}  // namespace braid
