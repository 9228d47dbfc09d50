// SPDX-License-Identifier: Apache-2.0
#include "signature.h"

namespace fake_nccl {
namespace {

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "ncclAllReduce";
    case Kind::kReduceScatter:
      return "ncclReduceScatter";
    case Kind::kAllGather:
      return "ncclAllGather";
    case Kind::kReduce:
      return "ncclReduce";
    case Kind::kBroadcast:
      return "ncclBroadcast";
    case Kind::kPair:
      return "ncclSend or ncclRecv";
  }
  return "?";
}

}  // namespace

std::string to_text(const Signature& signature) {
  std::string text = std::string(name_of(signature.kind)) + " (" + std::to_string(signature.count) +
                     " " + name_of(signature.type);
  if (reduces(signature.kind)) text += std::string(", ") + name_of(signature.reduction);
  if (signature.root >= 0) text += ", root " + std::to_string(signature.root);
  return text + ")";
}

}  // namespace fake_nccl
