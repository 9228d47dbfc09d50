// SPDX-License-Identifier: Apache-2.0
#include "update/state_bits.h"

#include <cstring>

#include "base/assert.h"
#include "codec/half_kernels.h"

namespace braid {
namespace {

// Where the half of a float32 lies, counted in bytes (little endian, as all that braid shares).
size_t offset_of(StateBits bits) { return bits == StateBits::High ? sizeof(uint16_t) : 0; }

HalfKind half_of(DataType dtype) {
  return dtype == DataType::Float16 ? HalfKind::Float16 : HalfKind::BFloat16;
}

}  // namespace

void load_values(DataType dtype, StateBits bits, const uint8_t* bytes, uint64_t count,
                 uint8_t* values) {
  if (element_bytes(dtype) != sizeof(uint16_t)) {
    BRAID_ASSERT(bits == StateBits::Rounded, "only float32 behind 16 bits has two halves");
    std::memcpy(values, bytes, count * element_bytes(dtype));
    return;
  }
  if (bits == StateBits::Rounded) {
    decode_halves(half_of(dtype), bytes, count, Into::Store, reinterpret_cast<float*>(values));
    return;
  }
  uint8_t* const halves = values + offset_of(bits);
  for (uint64_t i = 0; i < count; ++i) {
    std::memcpy(halves + i * sizeof(float), bytes + i * sizeof(uint16_t), sizeof(uint16_t));
  }
}

void fetch_values(DataType dtype, StateBits bits, const uint8_t* values, uint64_t count,
                  uint8_t* bytes) {
  if (element_bytes(dtype) != sizeof(uint16_t)) {
    BRAID_ASSERT(bits == StateBits::Rounded, "only float32 behind 16 bits has two halves");
    std::memcpy(bytes, values, count * element_bytes(dtype));
    return;
  }
  if (bits == StateBits::Rounded) {
    encode_halves(half_of(dtype), reinterpret_cast<const float*>(values), count, bytes);
    return;
  }
  const uint8_t* const halves = values + offset_of(bits);
  for (uint64_t i = 0; i < count; ++i) {
    std::memcpy(bytes + i * sizeof(uint16_t), halves + i * sizeof(float), sizeof(uint16_t));
  }
}

}  // namespace braid
