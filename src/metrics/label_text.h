// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace braid {

// `text` as a value of a label: one that is no UTF-8 would make Prometheus refuse the whole page.
// Each byte that is not part of a character, and each control character, becomes '?'.
std::string label_text(std::string_view text);

}  // namespace braid
