// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_tune.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "arguments/format_option.h"
#include "base/amount.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"
#include "client/status_client.h"

namespace braid {
namespace {

using nlohmann::json;

constexpr uint32_t kTuneTimeoutMs = 5000;

struct Column {
  const char* name;
  const char* heading;
};
constexpr Column kColumns[] = {
    {"flows_per_link", "FLOWS"},    {"streams", "STREAMS"},       {"unit_bytes", "UNIT"},
    {"chunk_bytes", "CHUNK"},       {"window_bytes", "WINDOW"},   {"direct_bytes", "DIRECT"},
    {"two_hops_bytes", "TWO HOPS"}, {"halving_bytes", "HALVING"}, {"hierarchical", "BY RACKS"}};
constexpr std::string_view kMayBeOff[] = {"direct_bytes", "two_hops_bytes", "halving_bytes",
                                          "hierarchical"};

std::string value_text(const json& values, const std::string& name) {
  const uint64_t value = values.at(name).get<uint64_t>();
  const bool may_be_off =
      std::find(std::begin(kMayBeOff), std::end(kMayBeOff), name) != std::end(kMayBeOff);
  if (may_be_off && value <= 1) return "-";
  if (name == "hierarchical") return "yes";
  return name.ends_with("_bytes") ? format_amount(value) : std::to_string(value);
}

std::vector<std::string> row_of(const std::string& what, const std::string& searcher,
                                const std::string& steps, const std::string& time,
                                const json& values) {
  std::vector<std::string> row = {what, searcher, steps, time};
  for (const Column& column : kColumns) row.push_back(value_text(values, column.name));
  return row;
}

std::string known_line(const json& known) {
  if (known.is_null()) return "nothing was known before\n";
  return fmt::format(
      "known before, {}: gain {:.2f}\n",
      known.at("is_same_job").get<bool>()
          ? std::string("of the same job")
          : fmt::format("of a job at distance {:.2f}", known.at("distance").get<double>()),
      known.at("gain").get<double>());
}

std::string tuning_table(const json& tuning) {
  const std::string state = tuning.at("state").get<std::string>();
  const std::string reason = tuning.at("reason").get<std::string>();
  std::string out = fmt::format(
      "set {} ({} tensors, {}), tuning {}: {}; {} trials, {} steps measured, gain {:.2f}\n",
      printable(tuning.at("set").get<std::string>()), tuning.at("tensors").get<uint32_t>(),
      format_amount(tuning.at("bytes").get<uint64_t>()), tuning.at("number").get<uint32_t>(), state,
      tuning.at("trials").size(), tuning.at("steps_measured").get<uint64_t>(),
      tuning.at("gain").get<double>());
  if (!reason.empty()) out += fmt::format("because {}\n", printable(reason));
  out += known_line(tuning.at("known")) + '\n';
  std::vector<std::vector<std::string>> rows = {{"TRIAL", "BY", "STEPS", "STEP TIME"}};
  for (const Column& column : kColumns) rows.front().emplace_back(column.heading);
  for (const json& trial : tuning.at("trials")) {
    rows.push_back(row_of(trial.at("purpose").get<std::string>(),
                          trial.at("searcher").get<std::string>(),
                          std::to_string(trial.at("steps").get<uint32_t>()),
                          format_seconds(trial.at("seconds").get<double>()), trial.at("values")));
  }
  if (state != "over") rows.push_back(row_of("(best so far)", "", "", "", tuning.at("incumbent")));
  rows.push_back(row_of(state == "over" ? "(chosen)" : "(else)", "", "", "", tuning.at("winner")));
  return out + render_table(rows);
}

std::string job_table(const json& job) {
  std::string out = fmt::format("job {}\n", printable(job.at("job").get<std::string>()));
  if (!job.at("is_coordinator").get<bool>()) {
    out += fmt::format("tuned by its coordinator, node {}: ask there\n",
                       printable(job.at("coordinator").get<std::string>()));
    const json& settings = job.at("settings");
    if (settings.is_null()) return out + "settings here: as they are configured\n";
    std::string line = "settings here:";
    for (const Column& column : kColumns)
      line += fmt::format(" {} {}", column.name, value_text(settings, column.name));
    return out + line + '\n';
  }
  if (job.at("tunings").empty()) return out + "nothing is tuned, or not yet\n";
  for (const json& tuning : job.at("tunings")) out += tuning_table(tuning);
  return out;
}

}  // namespace

CLI::App* add_tune_command(CLI::App& app, TuneCommand& command) {
  CLI::App* sub = app.add_subcommand(
      "tune", "how the settings of the jobs on this node are tuned; ask a job's coordinator");
  sub->fallthrough();
  sub->add_option("--job", command.job, "this job only")->type_name(kJobValue);
  add_format_options(*sub, command.as_json);
  return sub;
}

Result<CommandOutput> run_tune(const DaemonSource& daemon, const TuneCommand& command) {
  const auto path = daemon.socket("tune");
  if (!path) return path.status();
  const auto answer = query_tuning(*path, command.job, kTuneTimeoutMs);
  if (!answer) return answer.status();
  if (answer->json == "[]" && !command.job.empty()) {
    return make_status(StatusCode::NotFound, "no job '{}' runs on this node{}",
                       printable(command.job), hidden_note(answer->jobs_hidden));
  }
  if (command.as_json) return CommandOutput{answer->json + '\n', {}};
  auto tables = tune_tables(answer->json);
  if (!tables) return tables.status();
  return CommandOutput{*tables + hidden_line(answer->jobs_hidden), {}};
}

Result<std::string> tune_tables(const std::string& answer) try {
  const json jobs = json::parse(answer);
  if (jobs.empty()) return std::string("no job runs on this node\n");
  std::string out;
  for (const json& job : jobs) out += (out.empty() ? "" : "\n") + job_table(job);
  return out;
} catch (const json::exception& error) {
  return make_status(StatusCode::Protocol,
                     "this braidctl does not understand the daemon's answer; use the braidctl of "
                     "the daemon's version: {}",
                     error.what());
}

}  // namespace braid
