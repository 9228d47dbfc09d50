// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ipc/user_quotas.h"
#include "job/input_arenas.h"
#include "job/tensor_table.h"
#include "operation/operation_table.h"
#include "proto/ring.h"

namespace braid {

// Reads the operations that one trainer submits. What they name is checked: the arena is the
// trainer's, what is read there lies inside it, sizes are possible. Control loop only.
class SubmittedOperation {
 public:
  struct Trainer {
    uint32_t rank = 0;
    uint32_t world_size = 0;
    InputArenas& arenas;
    const UserCharge& buffers;  // BufferBytes: what is copied out of arenas counts as its user's
  };

  SubmittedOperation(const Trainer& trainer, const proto::SubmitEntry& entry, const Tensor& tensor)
      : trainer_(trainer), entry_(entry), tensor_(tensor) {}

  // Adds what the entry says of the operation: signature, update, input. NotFound, InvalidArgument:
  // what is wrong, with the tensor's name and the step.
  Status read(Submission& submission) const;

 private:
  Status sign(Submission& submission) const;
  Status find_update(Submission& submission) const;
  Status find_input(Submission& submission) const;

  const Trainer& trainer_;
  const proto::SubmitEntry& entry_;
  const Tensor& tensor_;
};

}  // namespace braid
