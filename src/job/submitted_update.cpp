// SPDX-License-Identifier: Apache-2.0
#include "job/submitted_update.h"

#include <cstring>

#include "base/checked.h"

namespace braid {

Result<UpdateStep> submitted_update(const Tensor& tensor, const Signature& signature,
                                    const SharedMemory& arena, uint64_t table) {
  if (signature.collective != Collective::AllReduce ||
      (signature.reduction != Reduction::Sum && signature.reduction != Reduction::Average)) {
    return make_status(StatusCode::InvalidArgument,
                       "is submitted as {}; owners update its weights with sums and averages",
                       to_string(signature));
  }
  proto::UpdateEntry entry;
  if (table % alignof(proto::UpdateEntry) != 0 || !range_fits(table, sizeof(entry), arena.size())) {
    return make_status(StatusCode::InvalidArgument,
                       "an update of {} bytes at {} is not inside the arena of {} bytes, or not "
                       "aligned to {}",
                       sizeof(entry), table, arena.size(), alignof(proto::UpdateEntry));
  }
  std::memcpy(&entry, arena.data() + table, sizeof(entry));
  return parse_update(entry, tensor.dtype, tensor.state_slots);
}

}  // namespace braid
