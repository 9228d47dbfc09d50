// SPDX-License-Identifier: Apache-2.0
#include "bench/replay_command.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "codec/codec_spec.h"
#include "planner/planner.h"

namespace braid::bench {
namespace {

constexpr uint32_t kStreamsMax = 64;
constexpr uint32_t kStepsMax = 1'000'000;
constexpr uint32_t kTimeoutSecondsMax = 3600;
constexpr double kSecondsMax = 3600;  // of a pass

std::string planner_names() {
  std::string names;
  for (const Planner* planner : planners()) names += std::string(planner->name()) + ", ";
  return names + kLivePlanner;
}

CLI::Validator is_contender() {
  return {[](const std::string& name) {
            if (name == kLivePlanner || find_planner(name)) return std::string();
            return fmt::format("no planner is named '{}'; there are {}", name, planner_names());
          },
          ""};
}

// Unlike CLI::Range it refuses NaN.
CLI::Validator is_seconds(bool may_be_zero) {
  return {[may_be_zero](const std::string& text) {
            double value = 0;
            const bool fits = CLI::detail::lexical_cast(text, value) &&
                              (may_be_zero ? value >= 0 : value > 0) && value <= kSecondsMax;
            if (fits) return std::string();
            return fmt::format("'{}' does not fit; right is a number {} 0, up to {}", text,
                               may_be_zero ? "from" : "above", kSecondsMax);
          },
          ""};
}

void add_trace_options(CLI::App& sub, ReplayOptions& options) {
  sub.add_option("--trace", options.trace_path, "the trace, as JSON (docs/planning.md)")
      ->required();
  sub.add_option("--planner", options.planners,
                 "one or several, separated by commas: " + planner_names())
      ->required()
      ->delimiter(',')
      ->check(is_contender());
  sub.add_option("--streams", options.streams,
                 "units in flight at once, for planners and prediction: the daemons' "
                 "collective.streams")
      ->capture_default_str()
      ->check(CLI::Range(1u, kStreamsMax));
  sub.add_option("--steps", options.steps, "measured steps of each planner; live has as many first")
      ->required()
      ->check(CLI::Range(1u, kStepsMax));
  sub.add_option("--time-scale", options.time_scale, "all times of the trace are multiplied by it")
      ->capture_default_str()
      ->check(is_seconds(/*may_be_zero=*/false));
  sub.add_option("--forward", options.forward_seconds,
                 "seconds of the forward pass, instead of the trace's; not scaled")
      ->check(is_seconds(/*may_be_zero=*/true));
}

}  // namespace

CLI::App* add_replay_command(CLI::App& app, ReplayOptions& options) {
  CLI::App* sub = app.add_subcommand(
      "replay", "steps of a trace with real gradients: measured time against the predicted one");
  add_trace_options(*sub, options);
  CLI::Option* cost =
      sub->add_option("--cost", options.cost_path,
                      "a model made by braidctl fit --json, instead of one measured in this run");
  CLI::Option* codec =
      sub->add_option("--codec", options.codec,
                      "of the gradients, such as int8 (docs/compression.md); with --planner live")
          ->check(CLI::Validator(
              [](const std::string& text) {
                const auto spec = parse_codec_spec(text);
                return spec ? std::string() : spec.status().message();
              },
              "CODEC"))
          ->excludes(cost);
  sub->add_option("--save-cost", options.save_cost_path,
                  "where the model goes that was measured in this run")
      ->excludes(cost)
      ->excludes(codec);
  sub->add_option_function<uint32_t>(
         "--timeout", [&options](uint32_t seconds) { options.timeout_ms = seconds * 1000; },
         "seconds until an operation, or opening the job, has failed")
      ->default_str(std::to_string(options.timeout_ms / 1000))
      ->check(CLI::Range(1u, kTimeoutSecondsMax));
  sub->add_option("--socket", options.socket_path,
                  "the daemon's socket (default: $BRAID_SOCKET, else /run/braid/braidd.sock)");
  sub->add_flag("--json", options.as_json, "one JSON object per planner");
  sub->parse_complete_callback([&options] {
    auto names = options.planners;
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      throw CLI::ValidationError("--planner", fmt::format("'{}' stands twice", *twice));
    const auto is_live = [](const std::string& name) { return name == kLivePlanner; };
    if (!options.codec.empty() && !std::ranges::all_of(names, is_live))
      throw CLI::ValidationError("--codec", "only the gradients of --planner live have one");
  });
  return sub;
}

}  // namespace braid::bench
