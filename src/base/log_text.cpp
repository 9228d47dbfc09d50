// SPDX-License-Identifier: Apache-2.0
#include "base/log_text.h"

#include <cstdint>

namespace braid {
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
