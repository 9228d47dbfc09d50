// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace braid {

// In the order in which codec_names() tells them.
enum class CodecKind : uint8_t {
  None = 0,
  BFloat16,
  Float16,
  Int8,
  Int4,
  Fp8E4M3,
  Fp8E5M2,
  EfSign,
  SignVote,
  OneBit,
  TwoBit,
  TopK,
  Dgc,
  Qsgd,
  TernGrad,
  Natural,
  BlockSparse,
};
inline constexpr uint8_t kCodecKindCount = 17;
using CodecKinds = std::bitset<kCodecKindCount>;  // by number

enum class Rounding : uint8_t { Nearest, Stochastic };  // nearest: ties to even

// A codec and its parameters, as users write them: "topk:ratio=0.01". What a codec does not have
// keeps the value of default_codec_spec().
struct CodecSpec {
  CodecKind kind = CodecKind::None;
  uint32_t block = 0;   // elements; 0: the whole part is one block
  float threshold = 0;  // 2bit: what a code stands for
  double ratio = 0;     // topk, dgc: the elements that are sent, of all
  uint32_t levels = 0;  // qsgd: steps from 0 to the norm
  Rounding rounding = Rounding::Nearest;
  uint64_t seed = 0;        // of what is random
  float momentum = 0;       // dgc
  uint32_t full_every = 0;  // steps, the last of which goes as float32; 0: none does
  bool operator==(const CodecSpec&) const = default;
};

const char* codec_name(CodecKind kind);
std::string codec_names();  // "none, bf16, …"
std::string codec_names(const CodecKinds& kinds);
CodecSpec default_codec_spec(CodecKind kind);

// "name" or "name:parameter=value,…". INVALID_ARGUMENT names the parameter and what would be right.
Result<CodecSpec> parse_codec_spec(std::string_view text);
// What parse_codec_spec() makes the same spec of; parameters that have their defaults are left out.
std::string to_string(const CodecSpec& spec);
// INVALID_ARGUMENT: a parameter is out of its range, or is not the codec's.
Status check_codec_spec(const CodecSpec& spec);

}  // namespace braid
