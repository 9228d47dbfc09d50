// SPDX-License-Identifier: Apache-2.0
#include "messages/signature.h"

#include <cstring>

#include <fmt/format.h>

#include "base/hash.h"

namespace braid {

std::optional<Signature> signature_of(const proto::OperationReady& ready) {
  if (ready.collective() >= kCollectiveCount || ready.dtype() >= kDataTypeCount ||
      ready.reduction() >= kReductionCount || ready.owner_step() >= kOwnerStepKindCount)
    return std::nullopt;
  Signature signature;
  signature.collective = static_cast<Collective>(ready.collective());
  signature.dtype = static_cast<DataType>(ready.dtype());
  signature.reduction = static_cast<Reduction>(ready.reduction());
  if (ready.codec() != nullptr) {
    const auto codec = parse_codec_spec(ready.codec()->string_view());
    if (!codec) return std::nullopt;
    signature.codec = *codec;
  }
  signature.owner_step = static_cast<OwnerStepKind>(ready.owner_step());
  if (signature.owner_step == OwnerStepKind::Optimizer) {
    proto::UpdateEntry entry;
    if (ready.update() == nullptr || ready.update()->size() != sizeof(entry)) return std::nullopt;
    std::memcpy(&entry, ready.update()->data(), sizeof(entry));
    const auto update = parse_update(entry, signature.dtype);
    if (!update) return std::nullopt;
    signature.update = *update;
    signature.updates = ready.updates();
  }
  signature.root = ready.root();
  signature.count = ready.count();
  signature.group = ready.group();
  signature.given = ready.given();
  return signature;
}

namespace {

// What its owners do, and with which numbers: one word of the record.
uint64_t hash_of_step(const Signature& signature) {
  if (signature.owner_step == OwnerStepKind::Plain) return 0;
  return static_cast<uint64_t>(signature.owner_step) ^ mix64(signature.updates);
}

uint64_t hash_of_codec(const CodecSpec& codec) {
  return codec.kind == CodecKind::None ? 0 : fnv1a64(to_string(codec));
}

}  // namespace

uint64_t hash_of(const Signature& signature, const JobHash& job) {
  return job.of(
      JobHash::Signature,
      {static_cast<uint64_t>(signature.collective), static_cast<uint64_t>(signature.dtype),
       static_cast<uint64_t>(signature.reduction), signature.root, signature.count, signature.group,
       hash_of_codec(signature.codec), hash_of_step(signature)});
}

namespace {

std::string describe_operation(const Signature& signature) {
  std::string text = to_string(signature.collective);
  switch (signature.collective) {
    case Collective::AllReduce:
    case Collective::ReduceScatter:
      text += fmt::format(" ({})", to_string(signature.reduction));
      break;
    case Collective::Broadcast:
    case Collective::Gather:
    case Collective::Scatter:
      text += fmt::format(" (root {})", signature.root);
      break;
    case Collective::AllGather:
      break;
    case Collective::AllToAll:
      return text + fmt::format(" of {}", to_string(signature.dtype));
    case Collective::Barrier:
      return text;
  }
  text += fmt::format(" of {} × {}", to_string(signature.dtype), signature.count);
  if (signature.group != 0) text += fmt::format(" in the group {:x}", signature.group);
  return text;
}

}  // namespace

std::string to_string(const Signature& signature) {
  std::string text = describe_operation(signature);
  if (signature.codec.kind != CodecKind::None)
    text += fmt::format(" with codec {}", to_string(signature.codec));
  if (signature.owner_step == OwnerStepKind::Optimizer && signature.updates != 0)
    text += fmt::format(", {} (of all its tensors: {:x})", to_string(signature.update),
                        signature.updates);
  return text;
}

}  // namespace braid
