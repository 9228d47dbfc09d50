// SPDX-License-Identifier: Apache-2.0
#include "bench/size_range.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "proto/types.h"

namespace braid::bench {
namespace {

struct Suffix {
  const char* text;
  double bytes;
};
constexpr std::array<Suffix, 11> kSuffixes = {{{"", 1},
                                               {"b", 1},
                                               {"k", 1 << 10},
                                               {"m", 1 << 20},
                                               {"g", 1 << 30},
                                               {"kib", 1 << 10},
                                               {"mib", 1 << 20},
                                               {"gib", 1 << 30},
                                               {"kb", 1e3},
                                               {"mb", 1e6},
                                               {"gb", 1e9}}};

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
  std::string suffix;
  for (const char* letter = end; letter != last; ++letter)
    suffix += *letter >= 'A' && *letter <= 'Z' ? static_cast<char>(*letter - 'A' + 'a') : *letter;
  for (const Suffix& one : kSuffixes) {
    if (error != std::errc() || suffix != one.text) continue;
    const double bytes = number * one.bytes;
    if (!(bytes >= 1) || bytes > double{kTensorBytesMax} || bytes != std::floor(bytes)) break;
    return static_cast<uint64_t>(bytes);
  }
  return make_status(StatusCode::InvalidArgument,
                     "'{}' is no size; right is a whole number of bytes from 1, such as 8, 1K, 1M "
                     "or 1G (powers of two), or 25MB (a power of ten)",
                     text);
}

Result<std::vector<uint64_t>> sizes_of(const SizeRange& range) {
  if (range.max_bytes < range.min_bytes) {
    return make_status(StatusCode::InvalidArgument,
                       "--maxbytes is {} and --minbytes {}: the last size is below the first one; "
                       "use -e {} or more",
                       range.max_bytes, range.min_bytes, range.min_bytes);
  }
  std::vector<uint64_t> sizes;
  // No product or sum overflows: both numbers are at most 2^48, and a factor has 16 bits.
  for (uint64_t bytes = range.min_bytes; bytes <= range.max_bytes;
       bytes = range.step_factor == 0 ? bytes + range.step_bytes : bytes * range.step_factor) {
    if (sizes.size() == SizeRange::kSizesMax) {
      return make_status(
          StatusCode::InvalidArgument,
          "--stepbytes {}: there are more than {} sizes from {} to {}; use a larger step, or -f 2",
          range.step_bytes, SizeRange::kSizesMax, range.min_bytes, range.max_bytes);
    }
    sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace braid::bench
