// SPDX-License-Identifier: Apache-2.0
#include "engine/operation.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/hash.h"

namespace braid {
namespace {

uint64_t bytes_of(uint64_t count, DataType dtype, uint32_t ranks) {
  return (CheckedNumber(count) * ranks * element_bytes(dtype)).value_or(UINT64_MAX);
}

}  // namespace

size_t OperationKeyHash::operator()(const OperationKey& key) const {
  return mix64(key.job_key ^ mix64(key.tensor ^ mix64(key.step + 1)));
}

uint64_t input_bytes(Collective collective, DataType dtype, uint64_t count, uint32_t world_size) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Broadcast:
    case Collective::AllGather:
      return bytes_of(count, dtype, 1);
    case Collective::ReduceScatter:
      return bytes_of(count, dtype, world_size);
    case Collective::Barrier:
    case Collective::Gather:
    case Collective::Scatter:
    case Collective::AllToAll:
      break;
  }
  return 0;
}

uint64_t result_bytes(Collective collective, DataType dtype, uint64_t count, uint32_t world_size) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Broadcast:
      return bytes_of(count, dtype, 1);
    case Collective::AllGather:
    case Collective::ReduceScatter:
      return bytes_of(count, dtype, world_size);
    case Collective::Barrier:
    case Collective::Gather:
    case Collective::Scatter:
    case Collective::AllToAll:
      break;
  }
  return 0;
}

const Route& route_of(const Operation& operation) {
  if (operation.route != nullptr) return *operation.route;
  BRAID_ASSERT(operation.ring->routes != nullptr, "a ring has its routes");
  const BasicRoutes& routes = *operation.ring->routes;
  switch (operation.collective) {
    case Collective::AllReduce:
    case Collective::Barrier:
      return operation.is_direct ? routes.direct : routes.all_reduce;
    case Collective::ReduceScatter:
      return routes.reduce_scatter;
    case Collective::Gather:
    case Collective::Scatter:
    case Collective::AllToAll:
      return routes.exchange;
    case Collective::Broadcast:
    case Collective::AllGather:
      break;
  }
  return routes.gather;
}

}  // namespace braid
