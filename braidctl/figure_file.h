// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/status.h"
#include "braidctl/figure.h"

namespace braid {

// A figure as docs/figures.md describes it. Errors begin with `file` and name the field.
Result<Figure> parse_figure(std::string_view text, std::string_view file);

}  // namespace braid
