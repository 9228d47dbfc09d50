// SPDX-License-Identifier: Apache-2.0
#include "codec/codec_spec.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

namespace braid {
namespace {

// Which parameters a codec has.
enum Parameters : uint16_t {
  kNothing = 0,
  kBlock = 1,       // of codes: not too large, or the scale fits few of them
  kWholeBlock = 2,  // of signs: any size, or the part
  kThreshold = 4,
  kRatio = 8,
  kLevels = 16,
  kRounding = 32,
  kSeed = 64,
  kMomentum = 128,
  kFullEvery = 256,
};

constexpr uint32_t kBlockStep = 16;
constexpr uint32_t kBlockMax = 65'536;
constexpr uint32_t kWholeBlockMax = 1 << 20;
constexpr uint32_t kLevelsMax = 127;
constexpr uint32_t kFullEveryMax = 1'000'000;
// A threshold stays a normal number, and so do its multiples.
constexpr float kThresholdMin = 1e-30f;
constexpr float kThresholdMax = 1e30f;

struct Row {
  const char* name;
  uint16_t parameters;
  CodecSpec defaults;
};

constexpr CodecSpec with_block(CodecKind kind, uint32_t block) {
  CodecSpec spec;
  spec.kind = kind;
  spec.block = block;
  return spec;
}

constexpr CodecSpec two_bit_defaults() {
  CodecSpec spec = with_block(CodecKind::TwoBit, 0);
  spec.threshold = 0.5f;
  return spec;
}

constexpr CodecSpec sparse_defaults(CodecKind kind, double ratio, float momentum) {
  CodecSpec spec = with_block(kind, 0);
  spec.ratio = ratio;
  spec.momentum = momentum;
  return spec;
}

constexpr CodecSpec stochastic(CodecSpec spec, uint32_t levels = 0) {
  spec.rounding = Rounding::Stochastic;
  spec.levels = levels;
  return spec;
}

constexpr std::array<Row, kCodecKindCount> kRows = {{
    {"none", kNothing, with_block(CodecKind::None, 0)},
    {"bf16", kRounding | kSeed, with_block(CodecKind::BFloat16, 0)},
    {"fp16", kNothing, with_block(CodecKind::Float16, 0)},
    {"int8", kBlock | kRounding | kSeed, with_block(CodecKind::Int8, 256)},
    {"int4", kBlock | kRounding | kSeed, with_block(CodecKind::Int4, 64)},
    {"fp8-e4m3", kBlock | kRounding | kSeed, with_block(CodecKind::Fp8E4M3, 256)},
    {"fp8-e5m2", kBlock | kRounding | kSeed, with_block(CodecKind::Fp8E5M2, 256)},
    {"ef-sign", kWholeBlock | kFullEvery, with_block(CodecKind::EfSign, 4096)},
    {"sign-vote", kNothing, with_block(CodecKind::SignVote, 0)},
    {"1bit", kWholeBlock | kFullEvery, with_block(CodecKind::OneBit, 4096)},
    {"2bit", kThreshold | kFullEvery, two_bit_defaults()},
    {"topk", kRatio | kFullEvery, sparse_defaults(CodecKind::TopK, 0.01, 0)},
    {"dgc", kRatio | kMomentum, sparse_defaults(CodecKind::Dgc, 0.001, 0.9f)},
    {"qsgd", kBlock | kLevels | kSeed, stochastic(with_block(CodecKind::Qsgd, 512), 127)},
    {"terngrad", kBlock | kSeed, stochastic(with_block(CodecKind::TernGrad, 512))},
    {"natural", kSeed, stochastic(with_block(CodecKind::Natural, 0))},
    {"block-sparse", kBlock, with_block(CodecKind::BlockSparse, 256)},
}};

struct ParameterName {
  const char* name;
  uint16_t bits;
};
constexpr std::array<ParameterName, 8> kParameterNames = {{{"block", kBlock | kWholeBlock},
                                                           {"threshold", kThreshold},
                                                           {"ratio", kRatio},
                                                           {"levels", kLevels},
                                                           {"rounding", kRounding},
                                                           {"seed", kSeed},
                                                           {"momentum", kMomentum},
                                                           {"full-every", kFullEvery}}};

const Row& row_of(CodecKind kind) { return kRows[static_cast<size_t>(kind)]; }

std::string parameters_of(const Row& row) {
  std::string names;
  for (const auto& parameter : kParameterNames) {
    if ((row.parameters & parameter.bits) == 0) continue;
    names += (names.empty() ? "" : ", ") + std::string(parameter.name);
  }
  return names.empty() ? "none at all" : names;
}

Status wrong(const Row& row, std::string_view name, std::string_view value,
             std::string_view right) {
  return make_status(StatusCode::InvalidArgument, "codec {}: {}={}: right is {}", row.name, name,
                     value, right);
}

// The whole text as one number; nothing else is left over.
template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

template <typename T>
Status set_number(const Row& row, std::string_view name, std::string_view text,
                  std::string_view right, T& value) {
  const auto parsed = number<T>(text);
  if (!parsed) return wrong(row, name, text, right);
  value = *parsed;
  return Status::ok();
}

std::string right_block(const Row& row) {
  if ((row.parameters & kWholeBlock) == 0) {
    return fmt::format("a multiple of {} from {} to {}", kBlockStep, kBlockStep, kBlockMax);
  }
  return fmt::format("a multiple of {} up to {}, or 0 for the whole part", kBlockStep,
                     kWholeBlockMax);
}
std::string right_threshold() {
  return fmt::format("a number from {} to {}", kThresholdMin, kThresholdMax);
}
std::string right_levels() { return fmt::format("a whole number from 1 to {}", kLevelsMax); }
std::string right_full_every() {
  return fmt::format("a whole number of steps from 2 to {}, or 0 for never", kFullEveryMax);
}
constexpr const char* kRightRatio = "a number above 0, up to 1";
constexpr const char* kRightMomentum = "a number from 0 to below 1";
constexpr const char* kRightSeed = "a whole number from 0 to 18446744073709551615";

Status set_parameter(const Row& row, std::string_view name, std::string_view value,
                     CodecSpec& spec) {
  if (name == "block") return set_number(row, name, value, right_block(row), spec.block);
  if (name == "threshold") return set_number(row, name, value, right_threshold(), spec.threshold);
  if (name == "ratio") return set_number(row, name, value, kRightRatio, spec.ratio);
  if (name == "levels") return set_number(row, name, value, right_levels(), spec.levels);
  if (name == "seed") return set_number(row, name, value, kRightSeed, spec.seed);
  if (name == "full-every") {
    return set_number(row, name, value, right_full_every(), spec.full_every);
  }
  if (name == "momentum") return set_number(row, name, value, kRightMomentum, spec.momentum);
  if (value == "nearest") {
    spec.rounding = Rounding::Nearest;
  } else if (value == "stochastic") {
    spec.rounding = Rounding::Stochastic;
  } else {
    return wrong(row, name, value, "nearest or stochastic");
  }
  return Status::ok();
}

Status parse_parameter(const Row& row, std::string_view text, uint16_t& given, CodecSpec& spec) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return make_status(StatusCode::InvalidArgument, "codec {}: '{}': right is parameter=value",
                       row.name, text);
  }
  const std::string_view name = text.substr(0, equals);
  for (const auto& parameter : kParameterNames) {
    if (name != parameter.name || (row.parameters & parameter.bits) == 0) continue;
    if ((given & parameter.bits) != 0) {
      return make_status(StatusCode::InvalidArgument, "codec {}: {} is given twice", row.name,
                         name);
    }
    given |= parameter.bits;
    return set_parameter(row, name, text.substr(equals + 1), spec);
  }
  return make_status(StatusCode::InvalidArgument, "codec {} has no parameter '{}'; it has {}",
                     row.name, name, parameters_of(row));
}

Status check_ranges(const Row& row, const CodecSpec& spec) {
  const uint16_t has = row.parameters;
  const bool is_whole = (has & kWholeBlock) != 0 && spec.block == 0;
  if ((has & (kBlock | kWholeBlock)) != 0 && !is_whole &&
      (spec.block == 0 || spec.block % kBlockStep != 0 ||
       spec.block > ((has & kBlock) != 0 ? kBlockMax : kWholeBlockMax))) {
    return wrong(row, "block", fmt::format("{}", spec.block), right_block(row));
  }
  if ((has & kThreshold) != 0 &&
      !(spec.threshold >= kThresholdMin && spec.threshold <= kThresholdMax)) {
    return wrong(row, "threshold", fmt::format("{}", spec.threshold), right_threshold());
  }
  if ((has & kRatio) != 0 && !(spec.ratio > 0 && spec.ratio <= 1)) {
    return wrong(row, "ratio", fmt::format("{}", spec.ratio), kRightRatio);
  }
  if ((has & kLevels) != 0 && (spec.levels == 0 || spec.levels > kLevelsMax)) {
    return wrong(row, "levels", fmt::format("{}", spec.levels), right_levels());
  }
  if ((has & kMomentum) != 0 && !(spec.momentum >= 0 && spec.momentum < 1)) {
    return wrong(row, "momentum", fmt::format("{}", spec.momentum), kRightMomentum);
  }
  if ((has & kFullEvery) != 0 && (spec.full_every == 1 || spec.full_every > kFullEveryMax)) {
    return wrong(row, "full-every", fmt::format("{}", spec.full_every), right_full_every());
  }
  return Status::ok();
}

}  // namespace

const char* codec_name(CodecKind kind) { return row_of(kind).name; }

std::string codec_names() { return codec_names(CodecKinds().set()); }

std::string codec_names(const CodecKinds& kinds) {
  std::string names;
  for (size_t kind = 0; kind < kRows.size(); ++kind) {
    if (kinds.test(kind)) names += (names.empty() ? "" : ", ") + std::string(kRows[kind].name);
  }
  return names;
}

CodecSpec default_codec_spec(CodecKind kind) { return row_of(kind).defaults; }

Result<CodecSpec> parse_codec_spec(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const Row* row = nullptr;
  for (const Row& candidate : kRows) {
    if (name == candidate.name) row = &candidate;
  }
  if (row == nullptr) {
    return make_status(StatusCode::InvalidArgument, "no codec is named '{}'; there are {}", name,
                       codec_names());
  }
  CodecSpec spec = row->defaults;
  uint16_t given = 0;
  size_t at = colon;
  while (at != std::string_view::npos) {
    const size_t comma = text.find(',', at + 1);
    const size_t end = comma == std::string_view::npos ? text.size() : comma;
    BRAID_RETURN_IF_ERROR(parse_parameter(*row, text.substr(at + 1, end - at - 1), given, spec));
    at = comma;
  }
  BRAID_RETURN_IF_ERROR(check_ranges(*row, spec));
  return spec;
}

std::string to_string(const CodecSpec& spec) {
  const Row& row = row_of(spec.kind);
  const CodecSpec& usual = row.defaults;
  std::string text = row.name;
  char separator = ':';
  const auto add = [&](const char* name, const auto& value) {
    text += fmt::format("{}{}={}", separator, name, value);
    separator = ',';
  };
  if (spec.block != usual.block) add("block", spec.block);
  if (spec.threshold != usual.threshold) add("threshold", spec.threshold);
  if (spec.ratio != usual.ratio) add("ratio", spec.ratio);
  if (spec.levels != usual.levels) add("levels", spec.levels);
  if (spec.rounding != usual.rounding) {
    add("rounding", spec.rounding == Rounding::Nearest ? "nearest" : "stochastic");
  }
  if (spec.seed != usual.seed) add("seed", spec.seed);
  if (spec.momentum != usual.momentum) add("momentum", spec.momentum);
  if (spec.full_every != usual.full_every) add("full-every", spec.full_every);
  return text;
}

Status check_codec_spec(const CodecSpec& spec) {
  if (static_cast<uint8_t>(spec.kind) >= kCodecKindCount) {
    return make_status(StatusCode::InvalidArgument, "no codec has the number {}; there are {}",
                       static_cast<uint8_t>(spec.kind), codec_names());
  }
  // What the codec does not have must have its default: then the text says all of a spec.
  const Result<CodecSpec> parsed = parse_codec_spec(to_string(spec));
  return parsed ? Status::ok() : parsed.status();
}

}  // namespace braid
