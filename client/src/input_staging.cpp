// SPDX-License-Identifier: Apache-2.0
#include "input_staging.h"

#include <cstring>

#include "base/checked.h"

namespace braid::client {
namespace {

size_t table_bytes_of(const Request& request) { return request.table.size() * sizeof(uint64_t); }

// The caller's blocks are in the order of ranks, and the daemon reads them in another one.
bool reorders(const Request& request, const RankBlocks& blocks) {
  return request.collective == Collective::ReduceScatter && !blocks.are_in_rank_order();
}

// Beside the input, for the table lies in its arena; nothing is copied if there is no room.
Status copy_table(const Request& request, Arenas& arenas, StagedInput& input) {
  BRAID_RETURN_IF_ERROR(arenas.allocate_in(input.place.arena, table_bytes_of(request), input.copy));
  if (!input.copy) return {};
  std::memcpy(arenas.at(*input.copy), request.table.data(), table_bytes_of(request));
  input.table = input.copy->offset;
  return {};
}

Status copy_all(const Request& request, Registry& registry, const RankBlocks& blocks,
                StagedInput& input) {
  const uint64_t input_bytes = request.input == nullptr ? 0 : request.input_bytes;
  const size_t table_bytes = table_bytes_of(request);
  const uint64_t table_at = round_up(input_bytes, sizeof(uint64_t));
  BRAID_RETURN_IF_ERROR(
      registry.allocate(table_bytes == 0 ? input_bytes : table_at + table_bytes, input.place));
  input.copy = input.place;
  uint8_t* to = registry.arenas().at(input.place);
  const auto* from = static_cast<const uint8_t*>(request.input);
  if (input_bytes != 0 && reorders(request, blocks)) {
    blocks.copy_to_ring_order(from, to, input_bytes / blocks.count());
  } else if (input_bytes != 0) {
    std::memcpy(to, from, input_bytes);
  }
  if (table_bytes != 0) {
    input.table = input.place.offset + table_at;
    std::memcpy(to + table_at, request.table.data(), table_bytes);
  }
  return {};
}

}  // namespace

Status stage_input(const Request& request, Registry& registry, const RankBlocks& blocks,
                   std::unique_lock<std::mutex>& lock, StagedInput& input) {
  Arenas& arenas = registry.arenas();
  const bool has_input = request.input != nullptr;
  bool fits = true;
  const auto found =
      has_input ? arenas.place_of(request.input, request.input_bytes, fits) : std::nullopt;
  if (!fits) {
    return make_status(StatusCode::InvalidArgument,
                       "input of the {} begins in the arena, but its {} bytes end outside",
                       describe(request, registry.tensors()), request.input_bytes);
  }
  const bool is_in_place =
      found && found->offset % element_bytes(request.dtype) == 0 && !reorders(request, blocks);
  if (is_in_place) input.place = *found;
  if (request.table.empty() && (is_in_place || !has_input)) return {};
  lock.unlock();
  Status copied;
  if (is_in_place) copied = copy_table(request, arenas, input);
  if (copied.is_ok() && !input.copy) copied = copy_all(request, registry, blocks, input);
  lock.lock();
  return copied;
}

}  // namespace braid::client
