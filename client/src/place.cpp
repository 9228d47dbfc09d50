// SPDX-License-Identifier: Apache-2.0
// braid_place.h: the border between C and C++.
#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <braid_place.h>

#include "error.h"
#include "options.h"
#include "planner/placement.h"

namespace braid::client {

template <>
inline constexpr size_t kFirstBytes<braid_place_item> = sizeof(braid_place_item);
template <>
inline constexpr size_t kFirstBytes<braid_place_options> = sizeof(braid_place_options);
template <>
inline constexpr size_t kFirstBytes<braid_placement> = sizeof(braid_placement);

namespace {

static_assert(Placement::kEverybody == BRAID_EVERYBODY);

Status read_item(const braid_place_item& given, size_t index, PlacedItem& item) {
  if (given.id == nullptr) {
    return make_status(StatusCode::InvalidArgument, "item {}: its id is NULL", index);
  }
  item.id = given.id;
  const size_t dimensions = given.dimensions;
  if (dimensions == 0 || dimensions > PlacedItem::kDimensionsMax || given.shape == nullptr) {
    return make_status(StatusCode::InvalidArgument,
                       "item {} '{}': its shape {} {} dimensions; right are 1 to {}", index,
                       item.id, given.shape == nullptr ? "is NULL and has" : "has", dimensions,
                       PlacedItem::kDimensionsMax);
  }
  item.shape.assign(given.shape, given.shape + dimensions);
  item.cost_seconds = given.cost_seconds;
  item.bytes = given.bytes;
  return Status::ok();
}

Status read_items(const braid_place_item* given, size_t count, std::vector<PlacedItem>& items) {
  if (given == nullptr || count == 0 || count > PlacedItem::kItemsMax) {
    return make_status(StatusCode::InvalidArgument,
                       "items and item_count name {} items; right are 1 to {}",
                       given == nullptr ? 0 : count, PlacedItem::kItemsMax);
  }
  items.resize(count);
  const char* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = 0; i < count; ++i) {
    braid_place_item one{};
    // The caller's struct may be larger than ours, so its struct_size is the array's stride.
    BRAID_RETURN_IF_ERROR(read_options(bytes + i * given->struct_size, "braid_place_item", one));
    if (one.struct_size != given->struct_size) {
      return Status(StatusCode::InvalidArgument, "struct_size differs within the array of items");
    }
    BRAID_RETURN_IF_ERROR(read_item(one, i, items[i]));
  }
  return Status::ok();
}

Status place(const braid_place_options* given, const braid_place_item* given_items, size_t count,
             uint32_t* owners, uint32_t* order, double* loads, braid_placement* told) {
  braid_place_options options{};
  BRAID_RETURN_IF_ERROR(read_options(given, "braid_place_options", options));
  braid_placement answer{};
  BRAID_RETURN_IF_ERROR(read_options(told, "braid_placement", answer));
  if (owners == nullptr) return Status(StatusCode::InvalidArgument, "owners is NULL");
  std::vector<PlacedItem> items;
  BRAID_RETURN_IF_ERROR(read_items(given_items, count, items));
  const auto placement =
      braid::place(items, options.ranks, options.rule == nullptr ? "best" : options.rule,
                   {options.startup_seconds, options.seconds_per_byte});
  if (!placement) return placement.status();
  std::ranges::copy(placement->owners, owners);
  if (order != nullptr) std::ranges::copy(placement->order, order);
  if (loads != nullptr) std::ranges::copy(placement->loads, loads);
  told->makespan_seconds = placement->makespan_seconds;
  told->bound_seconds = placement->bound_seconds;
  told->is_optimal = placement->is_optimal ? 1 : 0;
  told->order_count = static_cast<uint32_t>(placement->order.size());
  return Status::ok();
}

}  // namespace
}  // namespace braid::client

int braid_place(const braid_place_options* options, const braid_place_item* items,
                size_t item_count, uint32_t* owners, uint32_t* order, double* loads,
                braid_placement* placement) {
  try {
    return braid::client::report(
        braid::client::place(options, items, item_count, owners, order, loads, placement));
  } catch (const std::bad_alloc&) {
    return braid::client::report_out_of_memory();
  } catch (const std::exception& exception) {
    return braid::client::report_bug(exception.what());
  }
}
