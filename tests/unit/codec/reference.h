// SPDX-License-Identifier: Apache-2.0
// The formats of proto/SPEC.md, "Encoded parts", once more: element by element, with the standard
// library's rounding, and without the tricks of the kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/gradient_codec.h"

namespace braid::test {

std::vector<uint8_t> reference_encode(const CodecSpec& spec, std::span<const float> values,
                                      const EncodePlace& place);
std::vector<float> reference_decode(const CodecSpec& spec, std::span<const uint8_t> encoded,
                                    uint64_t count);

}  // namespace braid::test
