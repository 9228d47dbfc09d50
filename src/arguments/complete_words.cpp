// SPDX-License-Identifier: Apache-2.0
#include "arguments/complete_words.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"

namespace braid {
namespace {

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string kind_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

bool is_hidden(const CLI::Option& option) { return option.get_group().empty(); }

// Follows the words of a command line through commands and options.
class CommandLineWalk {
 public:
  CommandLineWalk(const CLI::App& app, const Completers& completers)
      : command_(&app), completers_(completers) {}

  void take(std::string_view word) {
    if (open_ != nullptr && !is_option(word)) {
      given_[names_of(*open_).front()] = word;
      if (open_->get_items_expected_max() == 1) open_ = nullptr;
      return;
    }
    open_ = nullptr;
    if (word == "--") {
      has_only_arguments_ = true;
    } else if (is_option(word)) {
      take_option(word);
    } else if (const CLI::App* below = find_command(word)) {
      command_ = below;
      arguments_ = 0;
    } else {
      ++arguments_;
    }
  }

  std::string offers_for(std::string_view typed) {
    const size_t equals = typed.find('=');
    if (is_option(typed) && equals != std::string_view::npos) {
      if (const CLI::Option* option = find_option(typed.substr(0, equals)))
        offer_values(*option, typed, std::string(typed.substr(0, equals + 1)));
    } else if (is_option(typed)) {
      offer_options(typed);
    } else if (open_ != nullptr) {
      offer_values(*open_, typed, "");
    } else {
      offer_commands_and_arguments(typed);
    }
    return (offers_files_ ? "files\n" : "words\n") + lines_;
  }

 private:
  bool is_option(std::string_view word) const {
    return !has_only_arguments_ && word.starts_with('-');
  }

  void take_option(std::string_view word) {
    const size_t equals = word.find('=');
    const CLI::Option* option = find_option(word.substr(0, equals));
    if (option == nullptr || !takes_value(*option)) return;
    if (equals == std::string_view::npos) {
      open_ = option;
    } else {
      given_[names_of(*option).front()] = word.substr(equals + 1);
    }
  }

  // Also those of the commands around it, which may stand behind it.
  const CLI::Option* find_option(std::string_view name) const {
    for (const CLI::App* app = command_; app != nullptr; app = app->get_parent()) {
      for (const CLI::Option* option : app->get_options()) {
        if (std::ranges::count(names_of(*option), name) != 0) return option;
      }
    }
    return nullptr;
  }

  const CLI::App* find_command(std::string_view name) const {
    for (const CLI::App* app : command_->get_subcommands({})) {
      if (app->get_name() == name) return app;
    }
    return nullptr;
  }

  void offer(const std::string& word, std::string_view typed, const std::string& means) {
    // Nothing that could be taken for another line, or command the terminal.
    if (word.starts_with(typed) && printable(word) == word)
      lines_ += fmt::format("{}\t{}\n", word, printable(means));
  }

  // `before`: what of the word is no part of the value.
  void offer_values(const CLI::Option& option, std::string_view typed, std::string before) {
    if (const char delimiter = option.get_delimiter(); delimiter != '\0') {
      const size_t last = typed.rfind(delimiter);
      if (last != std::string_view::npos) before = typed.substr(0, last + 1);
    }
    for (const std::string& choice : choices_of(option)) offer(before + choice, typed, "");
    const std::string kind = kind_of(option);
    offers_files_ = offers_files_ || kind == kFileValue || kind == kFolderValue;
    if (const auto completer = completers_.find(kind); completer != completers_.end()) {
      for (const std::string& value : completer->second(given_)) offer(before + value, typed, "");
    }
  }

  void offer_options(std::string_view typed) {
    for (const CLI::App* app = command_; app != nullptr; app = app->get_parent()) {
      for (const CLI::Option* option : app->get_options()) {
        // --help and --version of the commands around it are not this command's.
        const bool is_above = app != command_;
        if (is_hidden(*option) || (is_above && !takes_value(*option))) continue;
        for (const std::string& name : names_of(*option))
          offer(name, typed, option->get_description());
      }
    }
  }

  void offer_commands_and_arguments(std::string_view typed) {
    for (const CLI::App* app : command_->get_subcommands({})) {
      if (!app->get_group().empty()) offer(app->get_name(), typed, app->get_description());
    }
    const CLI::Option* argument = nullptr;
    size_t place = 0;
    for (const CLI::Option* option : command_->get_options()) {
      if (!option->get_positional()) continue;
      const bool takes_all = option->get_items_expected_max() > 1;
      if (place == arguments_ || (takes_all && place < arguments_)) argument = option;
      ++place;
    }
    if (argument != nullptr) offer_values(*argument, typed, "");
    if (argument == nullptr && lines_.empty() && typed.empty()) offer_options(typed);
  }

  const CLI::App* command_;
  const Completers& completers_;
  const CLI::Option* open_ = nullptr;  // takes the next word
  GivenValues given_;
  size_t arguments_ = 0;  // that the command has had
  bool has_only_arguments_ = false;
  bool offers_files_ = false;
  std::string lines_;
};

}  // namespace

std::string choices_text(const std::vector<std::string_view>& names) {
  return fmt::format("{{{}}}", fmt::join(names, ","));
}

std::string complete_words(const CLI::App& app, std::span<const char* const> words,
                           const Completers& completers) {
  if (words.empty()) return "words\n";
  CommandLineWalk walk(app, completers);
  for (const char* word : words.first(words.size() - 1)) walk.take(word);
  return walk.offers_for(words.back());
}

}  // namespace braid
