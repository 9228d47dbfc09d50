// SPDX-License-Identifier: Apache-2.0
#include "metrics/label_text.h"

#include <cstddef>
#include <cstdint>

namespace braid {
namespace {

// How many bytes the character has that `text` begins with; 0: it begins with none (RFC 3629,
// section 4).
size_t character_bytes(std::string_view text) {
  const auto byte = [text](size_t at) {
    return at < text.size() ? static_cast<uint8_t>(text[at]) : uint8_t{0};
  };
  const auto continues = [byte](size_t from, size_t to) {
    for (size_t at = from; at < to; ++at) {
      if ((byte(at) & 0xc0) != 0x80) return false;
    }
    return true;
  };
  const uint8_t first = byte(0);
  const uint8_t second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1, 2) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool is_overlong = first == 0xe0 && second < 0xa0;
    const bool is_surrogate = first == 0xed && second > 0x9f;
    return continues(1, 3) && !is_overlong && !is_surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool is_overlong = first == 0xf0 && second < 0x90;
    const bool is_too_large = first == 0xf4 && second > 0x8f;
    return continues(1, 4) && !is_overlong && !is_too_large ? 4 : 0;
  }
  return 0;
}

bool is_control(char c) { return static_cast<uint8_t>(c) < ' ' || c == '\x7f'; }

}  // namespace

std::string label_text(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    if (bytes == 0 || is_control(text.front())) {
      result += '?';
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return result;
}

}  // namespace braid
