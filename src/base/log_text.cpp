// SPDX-License-Identifier: Apache-2.0
#include "base/log_text.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace braid {
namespace {

// How many bytes the character at the beginning of `text` has; 0: it is no UTF-8.
size_t character_bytes(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than need be, a surrogate, or beyond Unicode.
  const bool is_bad = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ||
                      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90);
  return is_bad ? 0 : bytes;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;  // C1
}

void append_escaped(std::string& line, std::string_view bytes) {
  if (bytes == "\n") {
    line += "\\n";
    return;
  }
  for (const char c : bytes) line += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    if (bytes == 0 || is_control(character))
      append_escaped(line, character);
    else
      line += character;
    text.remove_prefix(character.size());
  }
  return line;
}

std::string_view cut_text(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t bytes = bytes_max;
  while (bytes > 0 && (static_cast<uint8_t>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
}

}  // namespace braid
