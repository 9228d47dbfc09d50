// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

namespace braid {

std::string printable(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return text;
}

}  // namespace braid
