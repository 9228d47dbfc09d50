// SPDX-License-Identifier: Apache-2.0
#include "engine/transfer_settings.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint32_t kChunkBytesMax = 512 << 10;

TEST(TransferSettings, DefaultsAreRight) {
  EXPECT_TRUE(check(TransferSettings{}, kChunkBytesMax).is_ok());
}

TEST(TransferSettings, WhatCannotBeIsNamed) {
  const std::vector<std::pair<std::function<void(TransferSettings&)>, std::string>> cases = {
      {[](auto& s) { s.chunk_bytes = kChunkBytesMax + 64; }, "chunk_bytes 524352"},
      {[](auto& s) { s.chunk_bytes = 100; }, "chunk_bytes 100"},
      {[](auto& s) { s.chunk_bytes = 5000; }, "chunk_bytes 5000 and unit_bytes 8388608"},
      {[](auto& s) { s.unit_bytes = 64; }, "unit_bytes 64"},
      {[](auto& s) { s.direct_bytes = kChunkBytesMax + 1; }, "direct_bytes 524289"},
      {[](auto& s) { s.two_hops_bytes = (1 << 30) + 1; }, "two_hops_bytes 1073741825"},
      {[](auto& s) { s.halving_bytes = (1 << 30) + 1; }, "halving_bytes 1073741825"},
      {[](auto& s) { s.streams = 0; }, "streams 0"},
      {[](auto& s) { s.flows = 257; }, "flows 257"},
      {[](auto& s) { s.window_bytes = 1; }, "window_bytes 1"},
  };
  for (const auto& [change, named] : cases) {
    TransferSettings settings;
    change(settings);
    const Status checked = check(settings, kChunkBytesMax);
    EXPECT_EQ(checked.code(), StatusCode::InvalidArgument);
    EXPECT_TRUE(checked.message().starts_with(named + "; right are ")) << checked.message();
  }
}

}  // namespace
}  // namespace braid
