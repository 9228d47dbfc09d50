// SPDX-License-Identifier: Apache-2.0
#include "job/submitted_splits.h"

#include <cstring>

#include "base/checked.h"

namespace braid {
namespace {

struct CountedSplits {
  UserCharge charge;
  Splits splits;
};

using Counts = std::vector<uint64_t>;

bool fits(const Counts& counts, DataType dtype) {
  CheckedNumber elements = 0;
  for (const uint64_t count : counts) elements += count;
  return (elements * element_bytes(dtype)).is_at_most(kTensorBytesMax);
}

Status read_table(Counts& to, Counts& from, const SharedMemory& arena, uint64_t table) {
  const uint64_t bytes = to.size() * sizeof(uint64_t);
  if (table % sizeof(uint64_t) != 0 || !range_fits(table, 2 * bytes, arena.size())) {
    return make_status(StatusCode::InvalidArgument,
                       "a table of splits of {} bytes at {} is not inside the arena of {} bytes, "
                       "or not aligned to 8",
                       2 * bytes, table, arena.size());
  }
  std::memcpy(to.data(), arena.data() + table, bytes);
  std::memcpy(from.data(), arena.data() + table + bytes, bytes);
  return Status::ok();
}

}  // namespace

Result<std::shared_ptr<const Splits>> submitted_splits(const Signature& signature, uint32_t rank,
                                                       uint32_t world_size,
                                                       const SharedMemory& arena, uint64_t table,
                                                       UserCharge charge) {
  BRAID_RETURN_IF_ERROR(charge.set(kSplitsCostBytes * world_size));
  Counts to(world_size, 0);
  Counts from(world_size, 0);
  if (signature.collective == Collective::AllToAll) {
    BRAID_RETURN_IF_ERROR(read_table(to, from, arena, table));
  } else {
    const bool is_gather = signature.collective == Collective::Gather;
    (is_gather ? to : from)[signature.root] = signature.count;
    if (rank == signature.root) (is_gather ? from : to).assign(world_size, signature.count);
  }
  if (!fits(to, signature.dtype) || !fits(from, signature.dtype)) {
    return make_status(StatusCode::InvalidArgument, "{} with splits of more than {} bytes",
                       to_string(signature), kTensorBytesMax);
  }
  auto counted = std::make_shared<CountedSplits>(
      CountedSplits{std::move(charge), Splits{SplitCounts(to), SplitCounts(from)}});
  const Splits* const splits = &counted->splits;
  return std::shared_ptr<const Splits>(std::move(counted), splits);
}

uint64_t input_bytes_of(const Splits& splits, DataType dtype) {
  return splits.to.sum() * element_bytes(dtype);
}

}  // namespace braid
