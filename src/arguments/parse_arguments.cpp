// SPDX-License-Identifier: Apache-2.0
#include "arguments/parse_arguments.h"

#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/near_names.h"
#include "base/printable.h"

namespace braid {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// With those of the commands around it, which may stand behind it, too.
std::vector<std::string> options_of(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
  }
  return names;
}

const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* found = &app;
  while (!found->get_subcommands().empty()) found = found->get_subcommands().back();
  return *found;
}

// "status", "braid-bench all_reduce": how it is called.
std::string called(const CLI::App& app, std::string_view program) {
  std::string name;
  for (const CLI::App* one = &app; one->get_parent() != nullptr; one = one->get_parent())
    name = fmt::format(" {}{}", one->get_name(), name);
  return std::string(program) + name;
}

std::string about_unexpected(const CLI::App& app, const std::string& argument) {
  const CLI::App& command = innermost(app);
  const bool is_option = argument.size() > 1 && argument.front() == '-';
  const std::vector<std::string> names = is_option ? options_of(&command) : commands_of(command);
  const std::string written = argument.substr(0, argument.find('='));
  const char* kind = is_option ? "option" : names.empty() ? "argument" : "command";
  std::string text = fmt::format("there is no {} '{}' here", kind, written);
  if (const auto meant = nearest_name(written, names))
    text += fmt::format("; did you mean '{}'?", *meant);
  return text;
}

std::string about(const CLI::App& app, const CLI::ParseError& error) {
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  // CLI11 tells what is missing first, and what is missing may be there, but mistyped.
  if (is_missing || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> left = app.remaining(true);
    if (!left.empty()) return about_unexpected(app, left.front());
  }
  const std::vector<std::string> commands = commands_of(innermost(app));
  if (is_missing && !commands.empty())
    return fmt::format("a command is required: {}", fmt::join(commands, ", "));
  return error.what();
}

}  // namespace

std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv,
                                   const Completers& completers) {
  const std::span<const char* const> arguments(argv, static_cast<size_t>(argc));
  if (argc > 1 && std::string_view(argv[1]) == kCompleteCommand) {
    std::fputs(complete_words(app, arguments.subspan(2), completers).c_str(), stdout);
    return 0;
  }
  const std::string program = std::filesystem::path(argv[0]).filename();
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const std::string command = called(innermost(app), program);
    std::fprintf(stderr, "%s: %s (%s --help says more)\n", program.c_str(),
                 printable(about(app, error)).c_str(), command.c_str());
    return kExitUsage;
  }
}

}  // namespace braid
