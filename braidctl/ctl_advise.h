// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braidctl/command.h"
#include "braidctl/ctl_live.h"
#include "braidctl/daemon_source.h"
#include "planner/planner.h"

namespace braid {

// `braidctl advise`: what codecs would bring to the step of a trace, or of a job that runs.
struct AdviseCommand {
  std::string trace_path;  // empty: the job is asked
  LiveOptions live;
  std::string cost_path;            // empty: what the job's daemons have fitted
  std::string rates_path;           // empty: they are measured
  std::vector<std::string> codecs;  // words of --codecs; empty: those that the advice looks at
  // Nothing: what the job has; without a job there are nodes, and for the others a default.
  std::optional<std::string> planner;
  std::optional<uint32_t> nodes;
  std::optional<double> encode_threads;
  std::optional<uint32_t> streams;
  double margin_percent = 3;
  std::optional<double> forward_seconds;
  bool as_json = false;
};

CLI::App* add_advise_command(CLI::App& app, AdviseCommand& command);
// `socket`: of the daemon that --job asks; empty: the usual one.
Result<CommandOutput> run_advise(const DaemonSource& daemon, const AdviseCommand& command);

// What advice is given of.
struct AdviseSubject {
  Trace trace;
  FittedCost cost;
  std::string cost_source = {};  // for warnings: "cost.json"
  uint32_t nodes = 0;
  std::string planner = "exact";
  PlannerOptions planning = {};
  double encode_threads = 1;
  double carry_seconds_per_byte = 0;  // CodedCost::Options
  // A job's iteration without a codec. 0: there is no job, or it was not measured.
  double measured_seconds = 0;
};
// The advice for a job's tensors. Errors: nothing is measured, there is one node, no cost is there,
// it says that bytes cost nothing, or it is not that of plain all-reduces, for the tensors travel
// with a codec already. `cost`: instead of the daemons'.
Result<AdviseSubject> advise_subject_of(LiveSet set, const std::string& job,
                                        std::optional<FittedCost> cost);

// A comma separates codecs and also the parameters of one: a word without a name of its own, such
// as "seed=1", belongs to the codec before it.
std::vector<std::string> join_codec_words(const std::vector<std::string>& words);

}  // namespace braid
