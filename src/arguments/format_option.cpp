// SPDX-License-Identifier: Apache-2.0
#include "arguments/format_option.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "arguments/complete_words.h"

namespace braid {
namespace {

constexpr const char* kTable = "table";
constexpr const char* kJson = "json";

std::string check_format(const std::string& name) {
  if (name == kTable || name == kJson) return {};
  return fmt::format("unknown format '{}'; right is {} or {}", name, kTable, kJson);
}

}  // namespace

FormatOptions add_format_options(CLI::App& command, bool& as_json, const std::string& json_says) {
  FormatOptions options;
  options.json = command.add_flag("--json", as_json, json_says + "; the same as --format json");
  options.format =
      command
          .add_option_function<std::string>(
              "--format", [&as_json](const std::string& name) { as_json = name == kJson; },
              "for people, or for tools")
          ->default_str(kTable)
          ->check(CLI::Validator(check_format, choices_text({kTable, kJson})))
          ->excludes(options.json);
  return options;
}

}  // namespace braid
