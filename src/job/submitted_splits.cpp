// SPDX-License-Identifier: Apache-2.0
#include "job/submitted_splits.h"

#include <cstring>
#include <numeric>

#include "base/checked.h"

namespace braid {
namespace {

struct CountedSplits {
  UserCharge charge;
  Splits splits;
};

bool fits(const std::vector<uint64_t>& counts, DataType dtype) {
  CheckedNumber elements = 0;
  for (const uint64_t count : counts) elements += count;
  return (elements * element_bytes(dtype)).is_at_most(kTensorBytesMax);
}

Status read_table(Splits& splits, const SharedMemory& arena, uint64_t table) {
  const uint64_t bytes = splits.to.size() * sizeof(uint64_t);
  if (table % sizeof(uint64_t) != 0 || !range_fits(table, 2 * bytes, arena.size())) {
    return make_status(StatusCode::InvalidArgument,
                       "a table of splits of {} bytes at {} is not inside the arena of {} bytes, "
                       "or not aligned to 8",
                       2 * bytes, table, arena.size());
  }
  std::memcpy(splits.to.data(), arena.data() + table, bytes);
  std::memcpy(splits.from.data(), arena.data() + table + bytes, bytes);
  return Status::ok();
}

}  // namespace

Result<std::shared_ptr<const Splits>> submitted_splits(const Signature& signature, uint32_t rank,
                                                       uint32_t world_size,
                                                       const SharedMemory& arena, uint64_t table,
                                                       UserCharge charge) {
  BRAID_RETURN_IF_ERROR(charge.set(kSplitsCostBytes * world_size));
  auto counted = std::make_shared<CountedSplits>();
  counted->charge = std::move(charge);
  Splits* const splits = &counted->splits;
  splits->to.assign(world_size, 0);
  splits->from.assign(world_size, 0);
  if (signature.collective == Collective::AllToAll) {
    BRAID_RETURN_IF_ERROR(read_table(*splits, arena, table));
  } else {
    const bool is_gather = signature.collective == Collective::Gather;
    std::vector<uint64_t>& of_all = is_gather ? splits->from : splits->to;
    std::vector<uint64_t>& of_root = is_gather ? splits->to : splits->from;
    of_root[signature.root] = signature.count;
    if (rank == signature.root) of_all.assign(world_size, signature.count);
  }
  if (!fits(splits->to, signature.dtype) || !fits(splits->from, signature.dtype)) {
    return make_status(StatusCode::InvalidArgument, "{} with splits of more than {} bytes",
                       to_string(signature), kTensorBytesMax);
  }
  return std::shared_ptr<const Splits>(std::move(counted), splits);
}

uint64_t input_bytes_of(const Splits& splits, DataType dtype) {
  return std::accumulate(splits.to.begin(), splits.to.end(), uint64_t{0}) * element_bytes(dtype);
}

}  // namespace braid
