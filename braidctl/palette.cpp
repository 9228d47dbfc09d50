// SPDX-License-Identifier: Apache-2.0
#include "braidctl/palette.h"

#include <array>

#include <fmt/format.h>

namespace braid {
namespace {

struct Colour {
  std::string_view light;
  std::string_view dark;
};

// Okabe and Ito's palette without its yellow, which white swallows, and with two more: people who
// see few colours can tell them apart.
constexpr std::array<Colour, 9> kSeries = {{{"#0072b2", "#4aa8e0"},
                                            {"#d55e00", "#ff8f45"},
                                            {"#009e73", "#35c498"},
                                            {"#cc79a7", "#e6a3c7"},
                                            {"#e69f00", "#f3bd47"},
                                            {"#56b4e9", "#9ad7fa"},
                                            {"#7b4fa3", "#b792dc"},
                                            {"#8c6d31", "#c8a866"},
                                            {"#5f6b73", "#98a6b0"}}};

constexpr std::array<Colour, 6> kRest = {{{kPaper, "#15181b"},
                                          {kInk, "#e6e9ec"},
                                          {kMuted, "#9aa5af"},
                                          {kGrid, "#343b42"},
                                          {kForwardFill, "#4a535c"},
                                          {kExposedFill, "#ff8a80"}}};

}  // namespace

std::string_view series_colour(size_t i) { return kSeries[i % kSeries.size()].light; }

std::string dark_style(std::string_view root, std::string_view drawing) {
  std::string rules;
  const auto add = [&](const Colour& colour) {
    for (const std::string_view property : {"fill", "stroke"}) {
      const std::string attribute = fmt::format(R"({}="{}")", property, colour.light);
      if (drawing.find(attribute) == std::string_view::npos) continue;
      rules += fmt::format(".{} [{}]{{{}:{}}}\n", root, attribute, property, colour.dark);
    }
  };
  for (const Colour& colour : kRest) add(colour);
  for (const Colour& colour : kSeries) add(colour);
  return fmt::format("<style>@media (prefers-color-scheme: dark) {{\n{}}}</style>\n", rules);
}

}  // namespace braid
