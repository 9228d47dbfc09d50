// SPDX-License-Identifier: Apache-2.0
#include "bench/collective_kinds.h"

#include <array>
#include <string>

#include <fmt/format.h>

namespace braid::bench {
namespace {

constexpr uint64_t kPartAlignment = 16;  // bytes; nccl-tests'

constexpr std::array<CollectiveKind, 7> kKinds = {{
    {Collective::AllReduce, "all_reduce", "every rank gets the reduction of all inputs",
     /*is_reducing=*/true, /*is_in_parts=*/false},
    {Collective::Broadcast, "broadcast", "every rank gets the root's input",
     /*is_reducing=*/false, /*is_in_parts=*/false},
    {Collective::AllGather, "all_gather", "every rank gets the inputs of all ranks",
     /*is_reducing=*/false, /*is_in_parts=*/true},
    {Collective::ReduceScatter, "reduce_scatter",
     "every rank gets its part of the reduction of all inputs",
     /*is_reducing=*/true, /*is_in_parts=*/true},
    {Collective::Gather, "gather", "the root gets the inputs of all ranks",
     /*is_reducing=*/false, /*is_in_parts=*/true},
    {Collective::Scatter, "scatter", "every rank gets its part of the root's input",
     /*is_reducing=*/false, /*is_in_parts=*/true},
    {Collective::AllToAll, "all_to_all", "every rank gets a part of each rank's input",
     /*is_reducing=*/false, /*is_in_parts=*/true},
}};

}  // namespace

std::span<const CollectiveKind> collective_kinds() { return kKinds; }

double bus_factor(const CollectiveKind& kind, uint32_t ranks) {
  const double n = ranks;
  if (kind.collective == Collective::AllReduce) return 2 * (n - 1) / n;
  return kind.is_in_parts ? (n - 1) / n : 1;
}

std::optional<Reduction> CollectiveSetup::reduction_if_any() const {
  return kind.is_reducing ? std::optional(reduction) : std::nullopt;
}

uint64_t CollectiveSetup::count_of(uint64_t bytes) const {
  const uint64_t count = bytes / element_bytes(dtype) / parts();
  return count - count % count_unit();
}

uint64_t CollectiveSetup::count_unit() const {
  return kind.is_in_parts ? kPartAlignment / element_bytes(dtype) : 1;
}

uint64_t CollectiveSetup::bytes_of(uint64_t count) const {
  return count * parts() * element_bytes(dtype);
}

uint64_t CollectiveSetup::input_count(uint64_t count) const {
  switch (kind.collective) {
    case Collective::Broadcast:
      return is_root() ? count : 0;
    case Collective::Scatter:
      return is_root() ? count * world_size : 0;
    case Collective::ReduceScatter:
    case Collective::AllToAll:
      return count * world_size;
    case Collective::AllReduce:
    case Collective::AllGather:
    case Collective::Gather:
    case Collective::Barrier:
      break;
  }
  return count;
}

uint64_t CollectiveSetup::result_count(uint64_t count) const {
  switch (kind.collective) {
    case Collective::Gather:
      return is_root() ? count * world_size : 0;
    case Collective::AllGather:
    case Collective::AllToAll:
      return count * world_size;
    case Collective::AllReduce:
    case Collective::Broadcast:
    case Collective::ReduceScatter:
    case Collective::Scatter:
    case Collective::Barrier:
      break;
  }
  return count;
}

Status CollectiveSetup::check_root() const {
  if (!has_root(kind.collective) || root < world_size) return Status::ok();
  return make_status(StatusCode::InvalidArgument,
                     "--root: there is no rank {}; right is 0 to {}, for WORLD_SIZE is {}", root,
                     world_size - 1, world_size);
}

Status CollectiveSetup::check_exact(std::span<const uint64_t> sizes) const {
  const uint64_t unit = element_bytes(dtype) * parts();
  for (const uint64_t bytes : sizes) {
    if (bytes % unit == 0) continue;
    const std::string each =
        kind.is_in_parts ? fmt::format(" for each of {} ranks", world_size) : "";
    return make_status(StatusCode::InvalidArgument,
                       "--sizes: {} is no multiple of the {} bytes of one {}{}; use {}", bytes,
                       unit, to_string(dtype), each, bytes / unit * unit + unit);
  }
  return Status::ok();
}

}  // namespace braid::bench
