// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "codec/gradient_codec.h"

namespace braid::test {

// One of each codec, and of each of its variants.
const std::vector<const char*>& all_specs();

std::unique_ptr<GradientCodec> codec_of(std::string_view spec);  // asserts that it is one

// Normal numbers, mostly small, a few large; the same in every run.
std::vector<float> gradient_of(uint64_t count, uint64_t seed);

// Encodes without memory, and asserts that this succeeds.
std::vector<uint8_t> encoded_by(const GradientCodec& codec, std::span<const float> values,
                                const EncodePlace& place = {});
// The same with memory.
std::vector<uint8_t> encoded_by(const GradientCodec& codec, std::span<const float> values,
                                std::vector<float>& memory, const EncodePlace& place = {});
std::vector<float> decoded_by(const GradientCodec& codec, std::span<const uint8_t> encoded,
                              uint64_t count);

// The same bits, or both NaN.
bool is_same(float a, float b);

}  // namespace braid::test
