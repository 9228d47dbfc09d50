// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <bit>

#include "codec/dither.h"
#include "reference_formats.h"

namespace braid::test {
namespace {

uint32_t sign_of(float value) { return std::signbit(value) ? 1 : 0; }

uint16_t half_code(const CodecSpec& spec, float value, uint32_t random) {
  const bool is_bf16 = spec.kind == CodecKind::BFloat16;
  const SmallFloat& format = is_bf16 ? kBf16 : kFp16;
  uint32_t code = 0;
  if (std::isnan(value)) {
    const uint32_t payload = std::bit_cast<uint32_t>(value) & 0x7fffff;
    code = is_bf16 ? 0x7fc0 | (payload >> 16) : 0x7e00 | (payload >> 13);
  } else if (std::isinf(value)) {
    code = format.infinity_code;
  } else if (spec.rounding == Rounding::Nearest) {
    code = format.nearest(std::fabs(value));
  } else {  // in 16 steps of two: what is cut off has so many bits
    code = format.dithered(std::fabs(value), (65535 - (random >> 16)) * 0x1p-16);
  }
  return static_cast<uint16_t>(code | (sign_of(value) << 15));
}

float half_value(const CodecSpec& spec, uint16_t code) {
  const SmallFloat& format = spec.kind == CodecKind::BFloat16 ? kBf16 : kFp16;
  const uint32_t magnitude = code & 0x7fffu;
  double value = format.value(magnitude);
  if (magnitude == format.infinity_code) value = std::numeric_limits<double>::infinity();
  if (magnitude > format.infinity_code) value = kNan;
  return static_cast<float>((code & 0x8000) != 0 ? -value : value);
}

double unit_of(uint32_t random) { return (random >> 8) * 0x1p-24; }

float norm_of(std::span<const float> block) {
  double sums[16] = {};
  for (size_t i = 0; i < block.size(); ++i) {
    sums[i % 16] += static_cast<double>(block[i]) * block[i];
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return static_cast<float>(std::min<double>(std::sqrt(total), std::numeric_limits<float>::max()));
}

float largest_of(std::span<const float> block) {
  float largest = 0;
  for (const float value : block) {
    if (!std::isfinite(value)) return kNan;
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

bool is_fp8(const CodecSpec& spec) {
  return spec.kind == CodecKind::Fp8E4M3 || spec.kind == CodecKind::Fp8E5M2;
}
bool has_nibbles(const CodecSpec& spec) {
  return spec.kind == CodecKind::Int4 || (spec.kind == CodecKind::Qsgd && spec.levels <= 7);
}
float largest_code(const CodecSpec& spec) {
  if (spec.kind == CodecKind::Fp8E4M3) return 448;
  if (spec.kind == CodecKind::Fp8E5M2) return 57344;
  if (spec.kind == CodecKind::Qsgd) return static_cast<float>(spec.levels);
  return spec.kind == CodecKind::Int4 ? 7 : 127;
}

int block_code_of(const CodecSpec& spec, float scaled, uint32_t random) {
  if (is_fp8(spec)) {
    const SmallFloat& format = spec.kind == CodecKind::Fp8E4M3 ? kE4M3 : kE5M2;
    const double magnitude = std::fabs(scaled);
    uint32_t code = 0;
    if (spec.rounding == Rounding::Nearest) {
      code = format.nearest(magnitude);
    } else if (magnitude < std::ldexp(1.0, format.least)) {
      code = format.dithered(magnitude, unit_of(random));
    } else {  // what is cut off of the mantissa, and as many random bits
      const uint32_t steps = 1u << (23 - format.mantissa);
      code = format.dithered(magnitude,
                             (steps - 1 - (random & (steps - 1))) / static_cast<double>(steps));
    }
    return static_cast<int>(code | (sign_of(scaled) << 7));
  }
  const auto most = static_cast<int>(largest_code(spec));
  const float below = std::floor(scaled);
  int code = static_cast<int>(std::nearbyint(scaled));
  if (spec.rounding == Rounding::Stochastic) {
    code = static_cast<int>(below) + (unit_of(random) < static_cast<double>(scaled - below));
  }
  return std::clamp(code, -most, most);
}

void encode_block(const CodecSpec& spec, std::span<const float> block, const Dither& dither,
                  uint64_t first, ByteWriter& out) {
  const float largest = largest_of(block);
  const float most =
      spec.kind == CodecKind::Qsgd && !std::isnan(largest) ? norm_of(block) : largest;
  float scale = most / largest_code(spec);
  if (std::isinf(scale * largest_code(spec))) scale = std::nextafter(scale, 0.0f);
  if (most < 0x1p-100f) scale = 0;
  out.put(scale);
  std::vector<int> codes(has_nibbles(spec) ? (block.size() + 15) / 16 * 16 : block.size());
  for (size_t i = 0; i < block.size() && most >= 0x1p-100f; ++i) {
    codes[i] = block_code_of(spec, block[i] * (largest_code(spec) / most),
                             dither.bits(static_cast<uint32_t>(first + i)));
  }
  for (size_t i = 0; i < codes.size(); ++i) {
    if (!has_nibbles(spec)) {
      out.put(static_cast<uint8_t>(codes[i]));
    } else if (i % 16 < 8) {
      out.put(static_cast<uint8_t>((codes[i] & 15) | ((codes[i + 8] & 15) << 4)));
    }
  }
}

void decode_block(const CodecSpec& spec, ByteReader& in, std::span<float> block) {
  const auto scale = in.get<float>();
  uint8_t packed[8] = {};
  for (size_t i = 0; i < block.size(); ++i) {
    float value = 0;
    if (has_nibbles(spec)) {
      if (i % 16 == 0) {
        for (auto& one : packed) one = in.get<uint8_t>();
      }
      const int code = (packed[i % 8] >> (i % 16 < 8 ? 0 : 4)) & 15;
      value = static_cast<float>(code < 8 ? code : code - 16);
    } else if (is_fp8(spec)) {
      const auto code = in.get<uint8_t>();
      const SmallFloat& format = spec.kind == CodecKind::Fp8E4M3 ? kE4M3 : kE5M2;
      const uint32_t magnitude = code & 0x7fu;
      value = magnitude > format.largest_code ? kNan : static_cast<float>(format.value(magnitude));
      if (code >= 0x80) value = -value;
    } else {
      value = static_cast<float>(in.get<int8_t>());
    }
    block[i] = value * scale;
  }
}

// Sums of magnitudes: 16 places, in float32 for 1024 elements, then in float64.
template <class Counts>
double sum_of(std::span<const float> block, const Counts& counts) {
  double sums[16] = {};
  for (size_t at = 0; at < block.size(); at += 1024) {
    float piece[16] = {};
    for (size_t i = at; i < std::min(block.size(), at + 1024); ++i) {
      if (counts(block[i])) piece[i % 16] += std::fabs(block[i]);
    }
    for (size_t place = 0; place < 16; ++place) sums[place] += static_cast<double>(piece[place]);
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

float mean_of(double sum, size_t count) {
  const auto mean = static_cast<float>(count == 0 ? 0 : sum / static_cast<double>(count));
  return std::isfinite(mean) ? mean : kNan;
}

void put_signs(std::span<const float> block, ByteWriter& out) {
  for (size_t at = 0; at < block.size(); at += 16) {
    uint32_t bits = 0;
    for (size_t i = at; i < std::min(block.size(), at + 16); ++i) {
      bits |= sign_of(block[i]) << (i - at);
    }
    out.put(static_cast<uint16_t>(bits));
  }
}

void encode_sign_block(const CodecSpec& spec, std::span<const float> block, ByteWriter& out) {
  if (spec.kind == CodecKind::SignVote) {
    out.put(std::any_of(block.begin(), block.end(), [](float v) { return std::isnan(v); }) ? kNan
                                                                                           : 1.0f);
  } else if (spec.kind == CodecKind::EfSign) {
    out.put(mean_of(sum_of(block, [](float) { return true; }), block.size()));
  } else {
    const auto negatives = static_cast<size_t>(
        std::count_if(block.begin(), block.end(), [](float v) { return std::signbit(v); }));
    float plus =
        mean_of(sum_of(block, [](float v) { return !std::signbit(v); }), block.size() - negatives);
    float minus = -mean_of(sum_of(block, [](float v) { return std::signbit(v); }), negatives);
    if (std::isnan(plus) || std::isnan(minus)) plus = minus = kNan;
    out.put(plus);
    out.put(minus);
  }
  put_signs(block, out);
}

void decode_sign_block(const CodecSpec& spec, ByteReader& in, std::span<float> block) {
  const auto plus = in.get<float>();
  const float minus = spec.kind == CodecKind::OneBit ? in.get<float>() : -plus;
  uint16_t bits = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    if (i % 16 == 0) bits = in.get<uint16_t>();
    block[i] = ((bits >> (i % 16)) & 1) != 0 ? minus : plus;
  }
}

void encode_ternary_block(const CodecSpec& spec, std::span<const float> block, const Dither& dither,
                          uint64_t first, ByteWriter& out) {
  const float scale = largest_of(block);
  if (spec.kind == CodecKind::TernGrad) out.put(scale);
  for (size_t at = 0; at < block.size(); at += 16) {
    uint32_t bits = 0;
    for (size_t i = at; i < std::min(block.size(), at + 16); ++i) {
      bool plus = block[i] >= spec.threshold;
      bool minus = block[i] <= -spec.threshold;
      if (spec.kind == CodecKind::TernGrad) {
        const uint32_t random = dither.bits(static_cast<uint32_t>(first + i));
        const bool is_sent =
            scale > 0 && unit_of(random) < static_cast<double>(std::fabs(block[i]) / scale);
        plus = is_sent && !std::signbit(block[i]);
        minus = is_sent && std::signbit(block[i]);
      } else if (!std::isfinite(block[i])) {
        plus = minus = true;
      }
      bits |= (plus ? 1u : 0u) << (i - at) | (minus ? 0x10000u : 0u) << (i - at);
    }
    out.put(bits);
  }
}

void decode_ternary_block(const CodecSpec& spec, ByteReader& in, std::span<float> block) {
  const float scale = spec.kind == CodecKind::TernGrad ? in.get<float>() : spec.threshold;
  uint32_t bits = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    if (i % 16 == 0) bits = in.get<uint32_t>();
    const bool plus = ((bits >> (i % 16)) & 1) != 0;
    const bool minus = ((bits >> (i % 16 + 16)) & 1) != 0;
    block[i] = plus ? scale : minus ? -scale : 0;
    if ((plus && minus) || std::isnan(scale)) block[i] = kNan;
  }
}

void encode_natural_row(std::span<const float> row, const Dither& dither, uint64_t first,
                        ByteWriter& out) {
  for (size_t i = 0; i < 16; ++i) {
    uint32_t exponent = 0;
    if (i < row.size() && !std::isfinite(row[i])) {
      exponent = 255;
    } else if (i < row.size() && row[i] != 0) {
      const uint32_t random = dither.bits(static_cast<uint32_t>(first + i)) >> 9;
      const double magnitude = std::fabs(row[i]);
      const int power = std::max(std::ilogb(magnitude), -127);
      const double low = power == -127 ? 0 : std::ldexp(1.0, power);
      const double high = std::ldexp(1.0, power + 1);
      const bool is_up = (magnitude - low) / (high - low) * 0x1p23 + random >= 0x1p23;
      exponent = static_cast<uint32_t>(std::min(power + 127 + (is_up ? 1 : 0), 254));
    }
    out.put(static_cast<uint8_t>(exponent));
  }
  put_signs(row, out);
}

void decode_natural_row(ByteReader& in, std::span<float> row) {
  uint8_t exponents[16];
  for (auto& one : exponents) one = in.get<uint8_t>();
  const auto signs = in.get<uint16_t>();
  for (size_t i = 0; i < row.size(); ++i) {
    float value = exponents[i] == 0 ? 0 : static_cast<float>(std::ldexp(1.0, exponents[i] - 127));
    if (exponents[i] == 255) value = kNan;
    row[i] = ((signs >> i) & 1) != 0 ? -value : value;
  }
}

uint64_t kept_of(const CodecSpec& spec, uint64_t count) {
  const auto kept = static_cast<uint64_t>(std::llround(spec.ratio * static_cast<double>(count)));
  return std::clamp<uint64_t>(kept, 1, count);
}

void encode_top(const CodecSpec& spec, std::span<const float> values, ByteWriter& out) {
  std::vector<uint32_t> order(values.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return (std::bit_cast<uint32_t>(values[a]) & 0x7fffffffu) >
           (std::bit_cast<uint32_t>(values[b]) & 0x7fffffffu);
  });
  order.resize(kept_of(spec, values.size()));
  std::sort(order.begin(), order.end());
  for (const uint32_t index : order) out.put(index);
  for (const uint32_t index : order) out.put(values[index]);
}

void decode_top(const CodecSpec& spec, ByteReader& in, std::span<float> out) {
  std::vector<uint32_t> order(kept_of(spec, out.size()));
  for (auto& index : order) index = in.get<uint32_t>();
  for (const uint32_t index : order) out[index] = in.get<float>();
}

bool is_zero_block(std::span<const float> block) {
  return std::all_of(block.begin(), block.end(),
                     [](float v) { return std::bit_cast<uint32_t>(v) == 0; });
}

void encode_sparse(const CodecSpec& spec, std::span<const float> values, ByteWriter& out) {
  std::vector<uint8_t> bitmap(((values.size() + spec.block - 1) / spec.block + 7) / 8);
  ByteWriter blocks;
  for (size_t at = 0, i = 0; at < values.size(); at += spec.block, ++i) {
    const auto block = values.subspan(at, std::min<size_t>(spec.block, values.size() - at));
    if (is_zero_block(block)) continue;
    bitmap[i / 8] = static_cast<uint8_t>(bitmap[i / 8] | (1 << (i % 8)));
    for (const float value : block) blocks.put(value);
  }
  for (const uint8_t byte : bitmap) out.put(byte);
  for (const uint8_t byte : blocks.take()) out.put(byte);
}

void decode_sparse(const CodecSpec& spec, ByteReader& in, std::span<float> out) {
  std::vector<uint8_t> bitmap(((out.size() + spec.block - 1) / spec.block + 7) / 8);
  for (auto& byte : bitmap) byte = in.get<uint8_t>();
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t block = i / spec.block;
    if (((bitmap[block / 8] >> (block % 8)) & 1) != 0) out[i] = in.get<float>();
  }
}

// The elements that belong together: a block, a row, or the part.
size_t step_of(const CodecSpec& spec, size_t count) {
  if (spec.kind == CodecKind::Natural) return 16;
  return spec.block == 0 ? std::max<size_t>(count, 1) : spec.block;
}

}  // namespace

std::vector<uint8_t> reference_encode(const CodecSpec& spec, std::span<const float> values,
                                      const EncodePlace& place) {
  const auto dither = Dither::make(spec.seed, place.stream, place.step, place.first_element);
  ByteWriter out;
  if (values.empty()) return {};
  if (spec.kind == CodecKind::BlockSparse) {
    encode_sparse(spec, values, out);
    return out.take();
  }
  const size_t step = step_of(spec, values.size());
  for (size_t at = 0; at < values.size(); at += step) {
    const auto block = values.subspan(at, std::min(step, values.size() - at));
    switch (spec.kind) {
      case CodecKind::None:
        for (const float value : block) out.put(value);
        break;
      case CodecKind::BFloat16:
      case CodecKind::Float16:
        for (size_t i = 0; i < block.size(); ++i) {
          out.put(half_code(spec, block[i], dither.bits(static_cast<uint32_t>(i))));
        }
        break;
      case CodecKind::Int8:
      case CodecKind::Int4:
      case CodecKind::Fp8E4M3:
      case CodecKind::Fp8E5M2:
      case CodecKind::Qsgd:
        encode_block(spec, block, dither, at, out);
        break;
      case CodecKind::EfSign:
      case CodecKind::SignVote:
      case CodecKind::OneBit:
        encode_sign_block(spec, block, out);
        break;
      case CodecKind::TwoBit:
      case CodecKind::TernGrad:
        encode_ternary_block(spec, block, dither, at, out);
        break;
      case CodecKind::TopK:
      case CodecKind::Dgc:
        encode_top(spec, block, out);
        break;
      case CodecKind::Natural:
        encode_natural_row(block, dither, at, out);
        break;
      case CodecKind::BlockSparse:
        break;
    }
  }
  return out.take();
}

std::vector<float> reference_decode(const CodecSpec& spec, std::span<const uint8_t> encoded,
                                    uint64_t count) {
  ByteReader in(encoded);
  std::vector<float> out(count);
  const std::span<float> all(out);
  const size_t step =
      spec.kind == CodecKind::BlockSparse ? std::max<size_t>(count, 1) : step_of(spec, count);
  for (size_t at = 0; at < count; at += step) {
    const auto block = all.subspan(at, std::min<size_t>(step, count - at));
    switch (spec.kind) {
      case CodecKind::None:
        for (float& value : block) value = in.get<float>();
        break;
      case CodecKind::BFloat16:
      case CodecKind::Float16:
        for (float& value : block) value = half_value(spec, in.get<uint16_t>());
        break;
      case CodecKind::Int8:
      case CodecKind::Int4:
      case CodecKind::Fp8E4M3:
      case CodecKind::Fp8E5M2:
      case CodecKind::Qsgd:
        decode_block(spec, in, block);
        break;
      case CodecKind::EfSign:
      case CodecKind::SignVote:
      case CodecKind::OneBit:
        decode_sign_block(spec, in, block);
        break;
      case CodecKind::TwoBit:
      case CodecKind::TernGrad:
        decode_ternary_block(spec, in, block);
        break;
      case CodecKind::TopK:
      case CodecKind::Dgc:
        decode_top(spec, in, block);
        break;
      case CodecKind::Natural:
        decode_natural_row(in, block);
        break;
      case CodecKind::BlockSparse:
        decode_sparse(spec, in, block);
        break;
    }
  }
  return out;
}

}  // namespace braid::test
