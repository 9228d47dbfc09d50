// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <CLI/CLI.hpp>

#include "arguments/complete_words.h"

namespace braid {

// What every program ends with when its arguments are wrong, and nothing was done.
constexpr int kExitUsage = 2;

// Parses a program's arguments. Empty: it goes on. Else it ends with this code: 0 after --help and
// --version, kExitUsage after a wrong argument, of which stderr has said in one line what it is and
// which one may have been meant. Also 0 after what a shell asks at TAB (complete_words).
std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv,
                                   const Completers& completers = {});

}  // namespace braid
