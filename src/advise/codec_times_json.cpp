// SPDX-License-Identifier: Apache-2.0
#include "advise/codec_times_json.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/read_file.h"
#include "planner/json_input.h"

namespace braid {
namespace {

constexpr size_t kRatesFileBytesMax = 16 << 20;
constexpr uint64_t kRateBytesMax = uint64_t{1} << 40;
constexpr std::string_view kRightRate = "a number of gigabytes in a second, more than 0";

Result<nlohmann::json> member(const nlohmann::json& object, std::string_view file,
                              const std::string& key) {
  const auto found = object.find(key);
  if (found != object.end()) return *found;
  return make_status(StatusCode::InvalidArgument,
                     "{}: {} is missing; right is what braid-bench codecs --json prints", file,
                     key);
}

Result<uint64_t> size_member(const nlohmann::json& object, std::string_view file,
                             const std::string& key) {
  const auto value = member(object, file, key);
  if (!value) return value.status();
  return JsonEntry{*value, file, key}.integer(1, kRateBytesMax, "a number of bytes from 1");
}

// Seconds of one pass; `may_lack`: a rate of 0 says that there is no such pass.
Status read_seconds(const nlohmann::json& object, std::string_view file, const std::string& key,
                    bool may_lack, uint64_t bytes, double& seconds) {
  const auto figures = member(object, file, key);
  if (!figures) return figures.status();
  if (!figures->is_object()) {
    return JsonEntry{*figures, file, key}.error("is no object", "{\"gb_per_second\": …}");
  }
  const auto rate = member(*figures, file, "gb_per_second");
  if (!rate) return rate.status().with_context(key);
  const JsonEntry entry{*rate, file, key + ".gb_per_second"};
  const auto value = entry.non_negative(kRightRate);
  if (!value) return value.status();
  if (*value == 0 && !may_lack) return entry.error("does not fit", kRightRate);
  seconds = *value == 0 ? 0 : static_cast<double>(bytes) / (*value * 1e9);
  return Status::ok();
}

Result<CodecTimes> parse_codec_line(std::string_view text, std::string_view file) {
  const auto object = parse_json_object(text, file);
  if (!object) return object.status();
  CodecTimes times;
  const auto name = member(*object, file, "codec");
  if (!name) return name.status();
  const auto codec = JsonEntry{*name, file, "codec"}.text("a codec, such as int8");
  if (!codec) return codec.status();
  const auto spec = parse_codec_spec(*codec);
  if (!spec) return spec.status().with_context(file);
  times.codec = to_string(*spec);
  const auto bytes = size_member(*object, file, "bytes");
  if (!bytes) return bytes.status();
  times.bytes = *bytes;
  const auto encoded = size_member(*object, file, "encoded_bytes");
  if (!encoded) return encoded.status();
  times.encoded_bytes = *encoded;
  const bool needs_memory = spec->kind == CodecKind::Dgc;
  BRAID_RETURN_IF_ERROR(
      read_seconds(*object, file, "encode", needs_memory, times.bytes, times.encode));
  BRAID_RETURN_IF_ERROR(read_seconds(*object, file, "encode_with_memory", false, times.bytes,
                                     times.encode_with_memory));
  BRAID_RETURN_IF_ERROR(read_seconds(*object, file, "decode", false, times.bytes, times.decode));
  BRAID_RETURN_IF_ERROR(
      read_seconds(*object, file, "decode_and_add", false, times.bytes, times.decode_and_add));
  for (const auto& [key, seconds] :
       {std::pair{"encode_sum", &times.encode_sum}, std::pair{"decode_sum", &times.decode_sum}}) {
    if (!object->contains(key)) continue;
    BRAID_RETURN_IF_ERROR(read_seconds(*object, file, key, false, times.bytes, *seconds));
  }
  return times;
}

}  // namespace

Result<std::vector<CodecTimes>> parse_codec_times(std::string_view text, std::string_view file) {
  std::vector<CodecTimes> all;
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto times = parse_codec_line(line, fmt::format("{}:{}", file, number));
    if (!times) return times.status();
    all.push_back(*times);
  }
  return all;
}

Result<std::vector<CodecTimes>> load_codec_times(const std::string& path) {
  const auto text = read_file(path, kRatesFileBytesMax);
  if (!text) return text.status();
  return parse_codec_times(*text, path);
}

}  // namespace braid
