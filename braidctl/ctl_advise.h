// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braidctl/command.h"

namespace braid {

// `braidctl advise`: what codecs would bring to the step of a trace.
struct AdviseCommand {
  std::string trace_path;
  std::string cost_path;
  std::string rates_path;           // empty: they are measured
  std::vector<std::string> codecs;  // words of --codecs; empty: those that the advice looks at
  std::string planner = "exact";
  uint32_t nodes = 0;
  uint32_t encode_threads = 1;
  uint32_t streams = 1;
  double margin_percent = 3;
  std::optional<double> forward_seconds;
  OutputFormat format = OutputFormat::Table;
};

CLI::App* add_advise_command(CLI::App& app, AdviseCommand& command);
Result<CommandOutput> run_advise(const AdviseCommand& command);

// A comma separates codecs and also the parameters of one: a word without a name of its own, such
// as "seed=1", belongs to the codec before it.
std::vector<std::string> join_codec_words(const std::vector<std::string>& words);

}  // namespace braid
