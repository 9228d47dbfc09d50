// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace braid {

// Every colour of a drawing, as it is on white. Where the reader prefers dark, dark_style() gives
// each of them its counterpart.
inline constexpr std::string_view kPaper = "#ffffff";
inline constexpr std::string_view kInk = "#24292f";
inline constexpr std::string_view kMuted = "#57606a";  // what explains
inline constexpr std::string_view kGrid = "#d8dee4";
inline constexpr std::string_view kForwardFill = "#c9d1d9";
inline constexpr std::string_view kExposedFill = "#cf222e";

// The colour of the i-th of many things: distinct, legible on the paper, again from the beginning
// after the last.
std::string_view series_colour(size_t i);

// A style sheet for elements below one of the class `root`; only of the colours in `drawing`.
std::string dark_style(std::string_view root, std::string_view drawing);

}  // namespace braid
