// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codec/codec_spec.h"
#include "messages/job_hash.h"
#include "proto/control_generated.h"
#include "proto/types.h"
#include "update/update_step.h"

namespace braid {

// What all ranks must agree on about one operation; compared between neighbours on the ring before
// any result is published. In an all-to-all each two nodes agree about what they give each other:
// `count` is what one expects from the other, `given` what it gives, and `group` the hash of how
// both are split among the ranks; between the ranks of a node all three are 0.
struct Signature {
  Collective collective = Collective::AllReduce;
  DataType dtype = DataType::Float32;
  Reduction reduction = Reduction::Sum;
  CodecSpec codec;  // how it travels between nodes
  OwnerStepKind owner_step = OwnerStepKind::Plain;
  uint32_t root = 0;
  uint64_t count = 0;
  uint64_t group = 0;  // hash over the tensors of a group; 0: a single tensor
  uint64_t given = 0;  // all-to-all between nodes alone
  // Where the owner's step is an optimizer's: what the first tensor asks for, and the hash of what
  // all of them do.
  UpdateStep update;
  uint64_t updates = 0;

  bool operator==(const Signature&) const = default;
};

// What another node says; nothing: of an operation, or with a codec, of unknown kind.
std::optional<Signature> signature_of(const proto::OperationReady& ready);

// The same on all nodes of the job.
uint64_t hash_of(const Signature& signature, const JobHash& job);

// "all-reduce (sum) of float32 × 1000"; a codec and an owner's step only where there is one.
std::string to_string(const Signature& signature);

}  // namespace braid
