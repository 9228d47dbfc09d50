// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <cstdint>

#include <fmt/format.h>

#include "base/log_text.h"

namespace braid {
namespace {

constexpr char32_t kNoCharacter = 0xfffd;

struct Character {
  std::string_view bytes;  // of what is no UTF-8: one
  char32_t code = kNoCharacter;
  bool is_harmless = false;
};

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

char32_t code_of(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first;
  char32_t code = first & (0x7fu >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3f);
  return code;
}

bool is_harmless(char32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool is_separator = code == 0x2028 || code == 0x2029;
  const bool turns_writing = code == 0x061c || code == 0x200e || code == 0x200f ||
                             (code >= 0x202a && code <= 0x202e) ||
                             (code >= 0x2066 && code <= 0x2069);
  return !is_control && !is_separator && !turns_writing;
}

Character take_character(std::string_view& text) {
  const size_t bytes = character_bytes(text);
  Character character{text.substr(0, bytes == 0 ? 1 : bytes)};
  if (bytes != 0) {
    character.code = code_of(character.bytes);
    character.is_harmless = is_harmless(character.code);
  }
  text.remove_prefix(character.bytes.size());
  return character;
}

void append_escaped(std::string& line, std::string_view bytes) {
  if (bytes == "\n") {
    line += "\\n";
    return;
  }
  for (const char c : bytes) line += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
}

}  // namespace

std::string printable(std::string_view text, size_t bytes_max) {
  std::string_view rest = cut_text(text, bytes_max);
  const bool is_cut = rest.size() < text.size();
  std::string line;
  line.reserve(rest.size());
  while (!rest.empty()) {
    const Character character = take_character(rest);
    if (character.is_harmless)
      line += character.bytes;
    else
      append_escaped(line, character.bytes);
  }
  if (is_cut) line += "...";
  return line;
}

std::string printable_lines(std::string_view text) {
  std::string lines;
  lines.reserve(text.size());
  while (!text.empty()) {
    const Character character = take_character(text);
    if (character.is_harmless || character.code == '\n' || character.code == '\t')
      lines += character.bytes;
    else
      lines += fmt::format("\\u{:04x}", static_cast<uint32_t>(character.code));
  }
  return lines;
}

std::string printable_label(std::string_view text) {
  std::string label;
  label.reserve(text.size());
  while (!text.empty()) {
    const Character character = take_character(text);
    if (character.is_harmless)
      label += character.bytes;
    else
      label += '?';
  }
  return label;
}

}  // namespace braid
