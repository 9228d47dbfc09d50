// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

// What a shell offers at TAB, from a program's own options. `braidctl completion` prints what calls
// it in bash, zsh and fish: PROGRAM __complete WORD..., the last of which is being typed.
namespace braid {

inline constexpr const char* kCompleteCommand = "__complete";

// Names of kinds of values (CLI::Option::type_name) that are completed: files, and those below.
inline constexpr const char* kFileValue = "FILE";
inline constexpr const char* kFolderValue = "FOLDER";

// Values that options were given before: "--socket" and its value.
using GivenValues = std::map<std::string, std::string>;
// The values of a kind that there are now. It must not wait for long: somebody has pressed TAB.
using Completer = std::function<std::vector<std::string>(const GivenValues&)>;
// By the name of the kind, such as "JOB".
using Completers = std::map<std::string, Completer>;

// The description of a CLI::Validator whose values are these: help shows it, and shells offer them.
std::string choices_text(const std::vector<std::string_view>& names);

// The first line is "words", or "files" if the name of a file fits, too. Each other line is a word
// that goes on with what is typed, a tab and what it means. A word that ends with '=' is only the
// beginning of one. `words` are those after the program's name, of which the last may be empty.
std::string complete_words(const CLI::App& app, std::span<const char* const> words,
                           const Completers& completers);

}  // namespace braid
