// SPDX-License-Identifier: Apache-2.0
#include "engine/transfer_settings.h"

#include <string_view>

namespace braid {
namespace {

constexpr uint64_t kSettingMultiple = 64;  // units and chunks are cut at multiples of it
constexpr uint64_t kSmallestChunkBytes = 4 << 10;
constexpr uint64_t kSettingUnitBytesMax = uint64_t{16} << 30;
constexpr uint64_t kWindowBytesMax = uint64_t{1} << 30;
constexpr uint64_t kAlgorithmBytesMax = uint64_t{1} << 30;
constexpr uint64_t kStreamsMax = 64;
constexpr uint64_t kFlowsMax = 256;

Status check_setting(std::string_view name, uint64_t value, uint64_t min, uint64_t max) {
  if (value >= min && value <= max) return Status::ok();
  return make_status(StatusCode::InvalidArgument, "{} {}; right are {} to {}", name, value, min,
                     max);
}

}  // namespace

Status check(const TransferSettings& settings, uint32_t chunk_bytes_max) {
  BRAID_RETURN_IF_ERROR(
      check_setting("chunk_bytes", settings.chunk_bytes, kSmallestChunkBytes, chunk_bytes_max));
  BRAID_RETURN_IF_ERROR(
      check_setting("unit_bytes", settings.unit_bytes, settings.chunk_bytes, kSettingUnitBytesMax));
  BRAID_RETURN_IF_ERROR(check_setting("direct_bytes", settings.direct_bytes, 0, chunk_bytes_max));
  BRAID_RETURN_IF_ERROR(
      check_setting("two_hops_bytes", settings.two_hops_bytes, 0, kAlgorithmBytesMax));
  BRAID_RETURN_IF_ERROR(
      check_setting("halving_bytes", settings.halving_bytes, 0, kAlgorithmBytesMax));
  BRAID_RETURN_IF_ERROR(check_setting("streams", settings.streams, 1, kStreamsMax));
  BRAID_RETURN_IF_ERROR(check_setting("flows", settings.flows, 1, kFlowsMax));
  BRAID_RETURN_IF_ERROR(
      check_setting("window_bytes", settings.window_bytes, settings.chunk_bytes, kWindowBytesMax));
  if (settings.chunk_bytes % kSettingMultiple == 0 && settings.unit_bytes % kSettingMultiple == 0)
    return Status::ok();
  return make_status(StatusCode::InvalidArgument,
                     "chunk_bytes {} and unit_bytes {}; right are multiples of {}",
                     settings.chunk_bytes, settings.unit_bytes, kSettingMultiple);
}

}  // namespace braid
