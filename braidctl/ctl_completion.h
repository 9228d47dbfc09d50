// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "arguments/complete_words.h"
#include "base/status.h"
#include "braidctl/command.h"

namespace braid {

struct CompletionCommand {
  std::string shell;
  std::vector<std::string> programs;  // empty: all of braid's
};

CLI::App* add_completion_command(CLI::App& app, CompletionCommand& command);
Result<CommandOutput> run_completion(const CompletionCommand& command);

// What braidctl's own words are completed with, beside its options: the jobs of this node.
Completers braidctl_completers();

}  // namespace braid
