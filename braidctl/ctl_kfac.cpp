// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_kfac.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "arguments/complete_words.h"
#include "arguments/format_option.h"
#include "base/printable.h"
#include "braidctl/algorithm_options.h"
#include "braidctl/sweep.h"
#include "braidctl/text_table.h"
#include "planner/kfac_methods.h"

namespace braid {
namespace {

struct KfacRow {
  uint32_t ranks = 1;
  std::string_view method;
  KfacResult result;
};

std::vector<std::string_view> kfac_method_names() {
  std::vector<std::string_view> names(kfac_methods().size());
  std::ranges::transform(kfac_methods(), names.begin(), &KfacMethod::name);
  return names;
}

std::string check_method(const std::string& name) {
  const std::vector<std::string_view> names = kfac_method_names();
  if (std::ranges::find(names, name) != names.end()) return {};
  return fmt::format("no method is called '{}'; right are {}", name, fmt::join(names, ", "));
}

// What only the options together tell.
void finish_kfac(KfacCommand& command) {
  auto ranks = parse_workers(command.ranks_text);
  if (!ranks) throw CLI::ValidationError("--ranks", ranks.status().message());
  command.ranks = std::move(ranks).value();
  for (const uint32_t count : command.ranks) {
    const auto cost =
        algorithm_cost(command.algorithm, count, command.link, command.algorithm_options);
    if (!cost) throw CLI::ValidationError("--ranks", cost.status().message());
  }
}

std::string kfac_heading(const KfacCommand& command, const KfacStep& step) {
  const auto factors = std::ranges::count_if(
      step.layers, [](const KfacStep::Layer& layer) { return layer.a.has_value(); });
  const std::string model =
      step.model.empty() ? std::filesystem::path(command.step_path).stem().string() : step.model;
  return fmt::format(
      "{}: {} layers, {} factors; all-reduces by {}, alpha {:g} s, beta {:g} s/byte, gamma {:g} "
      "s/byte\n"
      "AVERAGING, GRADIENTS and SPREADING are communication that no computing hides.\n\n",
      printable(model), step.layers.size(), 2 * factors, command.algorithm,
      command.link.latency_seconds, command.link.seconds_per_byte,
      command.link.reduce_seconds_per_byte);
}

std::string kfac_table(const std::vector<KfacRow>& rows) {
  std::vector<std::vector<std::string>> table = {{"RANKS", "METHOD", "PASSES", "FACTORS",
                                                  "AVERAGING", "GRADIENTS", "INVERSES", "SPREADING",
                                                  "TOTAL"}};
  for (const KfacRow& row : rows) {
    const KfacTimes& times = row.result.times;
    table.push_back({std::to_string(row.ranks), std::string(row.method)});
    for (const double seconds :
         {times.passes_seconds, times.factors_seconds, times.exposed_factors_seconds,
          times.exposed_gradients_seconds, times.inverses_seconds, times.exposed_inverses_seconds,
          times.total_seconds}) {
      table.back().push_back(format_seconds(seconds));
    }
  }
  std::string text = render_table(table) + '\n';
  for (const KfacRow& row : rows) {
    if (row.result.chosen.empty()) continue;
    text += fmt::format("{} on {} ranks: {}\n", row.method, row.ranks, row.result.chosen);
  }
  return text;
}

std::string kfac_json(const std::vector<KfacRow>& rows) {
  auto json = nlohmann::ordered_json::array();
  for (const KfacRow& row : rows) {
    const KfacTimes& times = row.result.times;
    const auto& plans = row.result.schedule.plans;
    nlohmann::ordered_json entry = {{"ranks", row.ranks},
                                    {"method", row.method},
                                    {"passes_seconds", times.passes_seconds},
                                    {"factors_seconds", times.factors_seconds},
                                    {"exposed_factors_seconds", times.exposed_factors_seconds},
                                    {"exposed_gradients_seconds", times.exposed_gradients_seconds},
                                    {"inverses_seconds", times.inverses_seconds},
                                    {"exposed_inverses_seconds", times.exposed_inverses_seconds},
                                    {"total_seconds", times.total_seconds},
                                    {"groups",
                                     {{"a", plans[KfacStreams::FactorsA].groups.size()},
                                      {"g", plans[KfacStreams::FactorsG].groups.size()},
                                      {"gradients", plans[KfacStreams::Gradients].groups.size()}}}};
    if (!row.result.chosen.empty()) entry["chosen"] = row.result.chosen;
    json.push_back(std::move(entry));
  }
  return json.dump() + '\n';
}

}  // namespace

CLI::App* add_kfac_command(CLI::App& app, KfacCommand& command) {
  CLI::App* sub =
      app.add_subcommand("kfac", "a step of K-FAC over numbers of ranks: D-, MPD-, SPD-KFAC, ours");
  sub->add_option("--step", command.step_path,
                  "layers, their factors and times, as JSON (docs/second-order.md)")
      ->type_name(kFileValue)
      ->required();
  add_algorithm_options(*sub, command.algorithm, command.link, command.algorithm_options);
  sub->add_option("--ranks", command.ranks_text, "such as 4,8,16 or 4,8,...,256")->required();
  sub->add_option("--methods", command.methods, "separated by commas (default: all)")
      ->delimiter(',')
      ->check(CLI::Validator(check_method, choices_text(kfac_method_names())));
  add_format_options(*sub, command.as_json);
  sub->parse_complete_callback([&command] { finish_kfac(command); });
  return sub;
}

Result<CommandOutput> run_kfac(const KfacCommand& command) {
  const auto step = load_kfac_step(command.step_path);
  if (!step) return step.status();
  std::vector<std::string_view> methods(command.methods.begin(), command.methods.end());
  if (methods.empty()) methods = kfac_method_names();
  std::vector<KfacRow> rows;
  for (const uint32_t ranks : command.ranks) {
    const auto cost =
        algorithm_cost(command.algorithm, ranks, command.link, command.algorithm_options);
    if (!cost) return cost.status();
    for (const std::string_view method : methods) {
      auto result = simulate_kfac_method(*step, KfacLink::of(ranks, *cost), method);
      if (!result) return result.status().with_context(command.step_path);
      rows.push_back({ranks, method, std::move(result).value()});
    }
  }
  return CommandOutput{
      command.as_json ? kfac_json(rows) : kfac_heading(command, *step) + kfac_table(rows), {}};
}

}  // namespace braid
