// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace braid {

// How a command asks for JSON. One of the two is enough, and both at once are refused.
struct FormatOptions {
  CLI::Option* json = nullptr;    // --json
  CLI::Option* format = nullptr;  // --format table or json
};

// Every command that prints data takes both. `json_says` is the help of --json; `as_json` must
// outlive the parsing.
FormatOptions add_format_options(CLI::App& command, bool& as_json,
                                 const std::string& json_says = "print JSON, for tools");

}  // namespace braid
