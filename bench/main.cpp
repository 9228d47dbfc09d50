// SPDX-License-Identifier: Apache-2.0
// braid-bench: measures braid from a trainer's place. Start it once per rank, as a training script;
// `codecs` and `ciphers` alone.
#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arguments/complete_words.h"
#include "arguments/format_option.h"
#include "arguments/parse_arguments.h"
#include "base/version.h"
#include "bench/ciphers.h"
#include "bench/codecs.h"
#include "bench/collective_command.h"
#include "bench/command_options.h"
#include "bench/device.h"
#include "bench/replay.h"
#include "codec/codec_spec.h"
#include "planner/planner.h"

using braid::bench::add_iterations_options;
using braid::bench::add_job_options;
using braid::bench::add_sizes_option;
using braid::bench::as_bytes;

namespace {

constexpr int kExitFailed = 1;

int finish(const braid::Status& status) {
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "braid-bench: %s\n", status.message().c_str());
  return kExitFailed;
}

// What is wrong with the arguments may depend on how many ranks there are.
int run_collective(braid::bench::CollectiveOptions& options) {
  const auto environment = braid::bench::read_environment();
  if (!environment) return finish(environment.status());
  if (const braid::Status settled = braid::bench::settle(options, *environment); !settled.is_ok()) {
    std::fprintf(stderr, "braid-bench: %s (braid-bench %s --help says more)\n",
                 settled.message().c_str(), options.setup.kind.name);
    return braid::kExitUsage;
  }
  return finish(braid::bench::run_collective(options, *environment));
}

// The rates of codecs need no daemon and no other rank.
CLI::App* add_codecs_command(CLI::App& app, braid::bench::CodecsOptions& options) {
  CLI::App* sub = app.add_subcommand(
      "codecs", "encodes and decodes gradients on one core: rates beside those of memory");
  sub->add_option("--bytes", options.bytes, "of float32, such as 64K or 25MB")
      ->capture_default_str()
      ->transform(as_bytes());
  sub->add_option("--codec", options.codecs,
                  "one or several, such as topk:ratio=0.01 (default: all of them)");
  sub->add_option("--repeats", options.repeats, "measured passes, of which the fastest counts")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1'000'000u));
  sub->add_option("--nodes", options.nodes,
                  "rates of the sums of so many nodes' parts, too, where they are encoded by "
                  "themselves")
      ->check(CLI::Range(1u, 127u));
  braid::add_format_options(*sub, options.as_json, "one JSON object per codec");
  return sub;
}

// Nor do those of encryption.
CLI::App* add_ciphers_command(CLI::App& app, braid::bench::CiphersOptions& options) {
  CLI::App* sub = app.add_subcommand(
      "ciphers", "encrypts, decrypts and hashes on one core: what transport.encryption costs");
  add_sizes_option(*sub, options.sizes, "bytes of a record, separated by commas");
  sub->get_option("--sizes")->capture_default_str();
  sub->add_option("--repeats", options.repeats, "measured passes, of which the fastest counts")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1'000'000u));
  braid::add_format_options(*sub, options.as_json, "one JSON object per size");
  return sub;
}

constexpr uint32_t kStreamsMax = 64;
constexpr uint32_t kStepsMax = 1'000'000;
constexpr double kSecondsMax = 3600;  // of a pass

std::vector<std::string_view> contenders() {
  std::vector<std::string_view> names = {braid::bench::kLivePlanner};
  for (const braid::Planner* planner : braid::planners()) names.push_back(planner->name());
  return names;
}

CLI::Validator is_contender() {
  return {[](const std::string& name) {
            if (name == braid::bench::kLivePlanner || braid::find_planner(name))
              return std::string();
            return fmt::format("no planner is named '{}'; there are {}", name,
                               fmt::join(contenders(), ", "));
          },
          braid::choices_text(contenders())};
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

void add_trace_options(CLI::App& sub, braid::bench::ReplayOptions& options) {
  sub.add_option("--trace", options.trace_path, "the trace, as JSON (docs/planning.md)")
      ->type_name(braid::kFileValue)
      ->required();
  sub.add_option("--planner", options.planners, "one or several, separated by commas")
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

CLI::App* add_replay_command(CLI::App& app, braid::bench::ReplayOptions& options) {
  CLI::App* sub = app.add_subcommand(
      "replay", "steps of a trace with real gradients: measured time against the predicted one");
  add_trace_options(*sub, options);
  CLI::Option* cost =
      sub->add_option("--cost", options.cost_path,
                      "a model made by braidctl fit --json, instead of one measured in this run")
          ->type_name(braid::kFileValue);
  CLI::Option* codec =
      sub->add_option("--codec", options.codec,
                      "of the gradients, such as int8 (docs/compression.md); with --planner live")
          ->check(CLI::Validator(
              [](const std::string& text) {
                const auto spec = braid::parse_codec_spec(text);
                return spec ? std::string() : spec.status().message();
              },
              "CODEC"))
          ->excludes(cost);
  sub->add_option("--save-cost", options.save_cost_path,
                  "where the model goes that was measured in this run")
      ->type_name(braid::kFileValue)
      ->excludes(cost)
      ->excludes(codec);
  add_job_options(*sub, options.timeout_ms, options.socket_path);
  braid::add_format_options(*sub, options.as_json, "one JSON object per planner");
  sub->parse_complete_callback([&options] {
    auto names = options.planners;
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      throw CLI::ValidationError("--planner", fmt::format("'{}' stands twice", *twice));
    const auto is_live = [](const std::string& name) { return name == braid::bench::kLivePlanner; };
    if (!options.codec.empty() && !std::ranges::all_of(names, is_live))
      throw CLI::ValidationError("--codec", "only the gradients of --planner live have one");
  });
  return sub;
}

CLI::App* add_device_command(CLI::App& app, braid::bench::DeviceOptions& options) {
  CLI::App* sub = app.add_subcommand(
      "device",
      "all-reduces of a GPU's memory beside the same of the CPU's: for how long they hold the "
      "thread that calls, and when the result is there");
  add_sizes_option(*sub, options.sizes, "bytes of float32, separated by commas");
  sub->get_option("--sizes")->required();
  add_iterations_options(*sub, options.iterations, options.warmup);
  add_job_options(*sub, options.timeout_ms, options.socket_path);
  braid::add_format_options(*sub, options.as_json, "one JSON object per size");
  return sub;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("braid-bench: measures braid from a trainer's place; start it once per rank");
  app.set_version_flag("--version", std::string("braid-bench ") + braid::kBraidVersion);
  app.require_subcommand(1);

  braid::bench::CollectiveOptions collective_options;
  braid::bench::add_collective_commands(app, collective_options);
  braid::bench::DeviceOptions device_options;
  const CLI::App* device = add_device_command(app, device_options);
  braid::bench::ReplayOptions replay_options;
  const CLI::App* replay = add_replay_command(app, replay_options);
  braid::bench::CodecsOptions codecs_options;
  const CLI::App* codecs = add_codecs_command(app, codecs_options);
  braid::bench::CiphersOptions ciphers_options;
  const CLI::App* ciphers = add_ciphers_command(app, ciphers_options);
  if (const auto code = braid::parse_arguments(app, argc, argv)) return *code;
  if (ciphers->parsed()) return finish(braid::bench::run_ciphers(ciphers_options));
  if (codecs->parsed()) return finish(braid::bench::run_codecs(codecs_options));
  if (replay->parsed()) return finish(braid::bench::run_replay(replay_options));
  if (device->parsed()) return finish(braid::bench::run_device(device_options));
  return run_collective(collective_options);
}
