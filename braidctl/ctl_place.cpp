// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_place.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "arguments/complete_words.h"
#include "arguments/format_option.h"
#include "base/amount.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"
#include "planner/placement_rules.h"

namespace braid {
namespace {

struct PlaceReport {
  PlacementInput input;
  Placement placement;
  double everybody_seconds = 0;  // of the items that everybody computes
  std::vector<ItemSpread> spreads;
  double planning_seconds = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string verdict(const Placement& placement) {
  if (placement.is_optimal) return "no placement is better";
  if (placement.bound_seconds == 0) return "no placement takes less than no time";
  return fmt::format("at most {:.2f} times the least possible, which is {} or more",
                     placement.makespan_seconds / placement.bound_seconds,
                     format_seconds(placement.bound_seconds));
}

std::string heading(const PlaceCommand& command, const PlaceReport& report) {
  const Placement& placement = report.placement;
  const auto [least, most] = std::ranges::minmax(placement.loads);
  std::string out = fmt::format(
      "{}: {} items on {} ranks; rule {}\n"
      "makespan {}: {}\n"
      "ranks compute for {} to {}",
      command.items_path, report.input.items.size(), command.ranks, command.rule,
      format_seconds(placement.makespan_seconds), verdict(placement), format_seconds(least),
      format_seconds(most));
  double busy = 0;
  for (const ItemSpread& spread : report.spreads) busy += spread.end_seconds - spread.start_seconds;
  const double end = report.spreads.empty() ? 0 : report.spreads.back().end_seconds;
  out += fmt::format("; the link is busy for {}, until {}\n\n", format_seconds(busy),
                     format_seconds(end));
  return out;
}

// Ranks that own something, and one line for the others.
std::string ranks_table(const PlaceReport& report) {
  const Placement& placement = report.placement;
  std::vector<size_t> counts(placement.loads.size());
  for (const uint32_t item : placement.order) ++counts[placement.owners[item]];
  std::vector<std::vector<std::string>> rows = {{"RANK", "OWNS", "OWN WORK", "LOAD"}};
  size_t idle = 0;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] == 0) {
      ++idle;
      continue;
    }
    rows.push_back({std::to_string(rank), std::to_string(counts[rank]),
                    format_seconds(placement.loads[rank] - report.everybody_seconds),
                    format_seconds(placement.loads[rank])});
  }
  if (idle > 0) {
    const std::string which =
        idle == counts.size() ? fmt::format("all {}", idle) : fmt::format("{} others", idle);
    rows.push_back({which, "0", format_seconds(0), format_seconds(report.everybody_seconds)});
  }
  return render_table(rows);
}

std::string items_table(const PlaceReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"ITEM", "SHAPE", "COST", "BYTES", "OWNER", "SPREAD", "UNTIL"}};
  const auto row = [&](uint32_t index) {
    const PlacedItem& item = report.input.items[index];
    return std::vector<std::string>{printable(item.id),
                                    fmt::format("{}", fmt::join(item.shape, "x")),
                                    format_seconds(item.cost_seconds), format_amount(item.bytes)};
  };
  for (const ItemSpread& spread : report.spreads) {
    rows.push_back(row(spread.item));
    rows.back().push_back(std::to_string(report.placement.owners[spread.item]));
    rows.back().push_back(format_seconds(spread.start_seconds));
    rows.back().push_back(format_seconds(spread.end_seconds));
  }
  for (uint32_t i = 0; i < report.input.items.size(); ++i) {
    if (report.placement.owners[i] != Placement::kEverybody) continue;
    rows.push_back(row(i));
    rows.back().insert(rows.back().end(), {"everybody", "-", "-"});
  }
  return render_table(rows);
}

std::string place_json(const PlaceCommand& command, const PlaceReport& report) {
  const Placement& placement = report.placement;
  nlohmann::ordered_json json;
  json["rule"] = command.rule;
  json["ranks"] = command.ranks;
  json["makespan_seconds"] = placement.makespan_seconds;
  json["bound_seconds"] = placement.bound_seconds;
  json["is_optimal"] = placement.is_optimal;
  json["everybody_seconds"] = report.everybody_seconds;
  json["planning_seconds"] = report.planning_seconds;
  json["loads"] = placement.loads;
  json["items"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < placement.owners.size(); ++i) {
    nlohmann::ordered_json item = {{"id", report.input.items[i].id}, {"owner", nullptr}};
    if (placement.owners[i] != Placement::kEverybody) item["owner"] = placement.owners[i];
    json["items"].push_back(std::move(item));
  }
  json["spreads"] = nlohmann::ordered_json::array();
  for (const ItemSpread& spread : report.spreads) {
    json["spreads"].push_back({{"id", report.input.items[spread.item].id},
                               {"start_seconds", spread.start_seconds},
                               {"end_seconds", spread.end_seconds}});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

std::string check_rule(const std::string& name) {
  if (name == "best" || name == "exact") return {};
  const auto rule = PlacementRule::parse(name);
  return rule ? std::string() : rule.status().message();
}

// Those that are complete without a number.
std::string plain_rules() {
  std::string_view left = PlacementRule::names();
  std::vector<std::string_view> plain;
  while (!left.empty()) {
    const std::string_view name = left.substr(0, left.find(", "));
    left.remove_prefix(std::min(left.size(), name.size() + 2));
    if (!name.ends_with(":F")) plain.push_back(name);
  }
  return choices_text(plain);
}

}  // namespace

CLI::App* add_place_command(CLI::App& app, PlaceCommand& command) {
  CLI::App* sub = app.add_subcommand(
      "place",
      "which rank computes which inverse or matrix of a step, and what everybody computes");
  sub->add_option("--items", command.items_path,
                  "what is computed, how long it takes, and the link, as JSON "
                  "(docs/second-order.md)")
      ->type_name(kFileValue)
      ->required();
  sub->add_option("--ranks", command.ranks, "how many ranks share the work")
      ->required()
      ->check(is_integer(1, Placement::kRanksMax));
  sub->add_option(
         "--rule", command.rule,
         "who gets which item; kaisa:0.5 means that half of the ranks are an item's workers")
      ->capture_default_str()
      ->check(CLI::Validator(check_rule, plain_rules()));
  add_format_options(*sub, command.as_json);
  return sub;
}

Result<CommandOutput> run_place(const PlaceCommand& command) {
  auto input = load_placement_input(command.items_path);
  if (!input) return input.status();
  PlaceReport report;
  report.input = std::move(input).value();
  const auto start = std::chrono::steady_clock::now();
  auto placement = place(report.input.items, command.ranks, command.rule, report.input.link);
  if (!placement) return placement.status().with_context(command.items_path);
  report.planning_seconds = seconds_since(start);
  report.placement = std::move(placement).value();
  for (size_t i = 0; i < report.input.items.size(); ++i) {
    if (report.placement.owners[i] == Placement::kEverybody)
      report.everybody_seconds += report.input.items[i].cost_seconds;
  }
  report.spreads = spreads_of(report.input, report.placement);
  return CommandOutput{
      command.as_json ? place_json(command, report)
                      : heading(command, report) + ranks_table(report) + '\n' + items_table(report),
      {}};
}

std::vector<ItemSpread> spreads_of(const PlacementInput& input, const Placement& placement) {
  std::vector<double> computed(placement.loads.size());
  std::vector<ItemSpread> spreads;
  double end = 0;
  for (const uint32_t index : placement.order) {
    const PlacedItem& item = input.items[index];
    double& owner = computed[placement.owners[index]];
    owner += item.cost_seconds;
    const double start = std::max(end, owner);
    end = start + (computed.size() > 1 ? input.link.seconds(static_cast<double>(item.bytes)) : 0);
    spreads.push_back({index, start, end});
  }
  return spreads;
}

}  // namespace braid
