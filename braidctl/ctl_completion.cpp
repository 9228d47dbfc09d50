// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_completion.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braidctl/personal_sockets.h"
#include "braidctl/status_view.h"
#include "client/status_client.h"

namespace braid {
namespace {

// Somebody waits at the keyboard.
constexpr uint32_t kJobNamesTimeoutMs = 1000;

constexpr std::array<std::string_view, 5> kPrograms = {"braidctl", "braidd", "braid-bench",
                                                       "braid-run", "braid-plot"};

// Each asks the program itself, so it never is older than the program. @programs@: their names.
struct ShellScript {
  std::string_view shell;
  std::string_view text;
};

constexpr std::string_view kBash = R"(# bash completion for @programs@

_braid_complete() {
  local words=() last=${COMP_WORDS[COMP_CWORD]} i word kind quoted before
  COMPREPLY=()
  # bash takes --option=value apart at the = and some names at the :
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if ((i > 1)) && [[ $word == [=:]* || ${COMP_WORDS[i - 1]} == [=:] ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
  done
  [[ $last == [=:] ]] && last=''
  before=${words[-1]%"$last"}
  {
    read -r kind
    while IFS=$'\t' read -r word _; do
      printf -v quoted %q "${word#"$before"}"
      COMPREPLY+=("$quoted")
    done
  } < <("${1/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null </dev/null)
  if [[ $kind == files ]]; then
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$last")
    compopt -o filenames 2>/dev/null
  elif [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
  return 0
}

complete -F _braid_complete @programs@
)";

constexpr std::string_view kZsh = R"(#compdef @programs@

_braid_complete() {
  local -a lines ready begun
  local line word
  lines=("${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
  for line in "${(@)lines[2,-1]}"; do
    word=${line%%$'\t'*}
    [[ $word == *= ]] && begun+=("${word//:/\\:}:${line#*$'\t'}") || ready+=("${word//:/\\:}:${line#*$'\t'}")
  done
  (($#ready)) && _describe -t words word ready
  (($#begun)) && _describe -t words word begun -S ''
  if [[ $lines[1] == files ]]; then
    [[ $PREFIX == -* ]] && compset -P '*='
    _files
  fi
}

if [[ $funcstack[1] == _[^_]* && $funcstack[1] != _braid_complete ]]; then
  _braid_complete "$@"
else
  compdef _braid_complete @programs@
fi
)";

constexpr std::string_view kFish = R"(# fish completion for @programs@

function __braid_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l lines ($program __complete $words $typed 2>/dev/null </dev/null)
    set -l kind $lines[1]
    set -e lines[1]
    test (count $lines) -gt 0; and printf '%s\n' $lines
    if test "$kind" = files
        set -l before (string match -r '^--[^=]*=' -- $typed)
        for file in (__fish_complete_path (string replace -- "$before" '' $typed))
            echo "$before$file"
        end
    end
end

for program in @programs@
    complete -c $program -f -a '(__braid_complete)'
end
)";

constexpr std::array<ShellScript, 3> kScripts = {{
    {"bash", kBash},
    {"zsh", kZsh},
    {"fish", kFish},
}};

std::vector<std::string_view> shells() {
  std::vector<std::string_view> names;
  names.reserve(kScripts.size());
  for (const ShellScript& script : kScripts) names.push_back(script.shell);
  return names;
}

CLI::Validator is_one_of(std::vector<std::string_view> names) {
  std::string choices = choices_text(names);
  return {[names = std::move(names)](const std::string& given) {
            if (std::ranges::count(names, given) != 0) return std::string();
            return fmt::format("'{}' does not fit; right is one of {}", given,
                               fmt::join(names, ", "));
          },
          std::move(choices)};
}

std::vector<std::string> job_names(const GivenValues& given) {
  const auto found = given.find("--socket");
  std::string socket = found == given.end() ? "" : found->second;
  const std::vector<std::string> personal = personal_sockets(socket);
  if (personal.size() == 1) socket = personal.front();
  const auto json = query_status(daemon_socket_path(socket), kJobNamesTimeoutMs);
  if (!json) return {};
  const auto status = parse_status(*json);
  if (!status) return {};
  std::vector<std::string> names;
  for (const DaemonStatus::Job& job : status->jobs) names.push_back(job.name);
  return names;
}

}  // namespace

CLI::App* add_completion_command(CLI::App& app, CompletionCommand& command) {
  CLI::App* sub = app.add_subcommand(
      "completion",
      "print what completes the words of braid's programs in a shell: eval \"$(braidctl "
      "completion bash)\"");
  sub->add_option("SHELL", command.shell, "for this one")->required()->check(is_one_of(shells()));
  sub->add_option("PROGRAM", command.programs, "for these (default: all)")
      ->check(is_one_of({kPrograms.begin(), kPrograms.end()}));
  return sub;
}

Result<CommandOutput> run_completion(const CompletionCommand& command) {
  const std::string programs = command.programs.empty()
                                   ? fmt::format("{}", fmt::join(kPrograms, " "))
                                   : fmt::format("{}", fmt::join(command.programs, " "));
  const auto* script = std::ranges::find(kScripts, command.shell, &ShellScript::shell);
  return CommandOutput{
      CLI::detail::find_and_replace(std::string(script->text), "@programs@", programs), {}};
}

Completers braidctl_completers() { return {{kJobValue, job_names}}; }

}  // namespace braid
