// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_advise.h"

#include <algorithm>
#include <cmath>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "advise/codec_times_json.h"
#include "arguments/complete_words.h"
#include "arguments/format_option.h"
#include "braidctl/advice_report.h"
#include "planner/occupying_cost.h"
#include "planner/planner.h"

namespace braid {
namespace {

constexpr uint32_t kAdviseNodesMax = 65'536;
constexpr double kEncodeThreadsMin = 0.01;
constexpr double kEncodeThreadsMax = 1024;
constexpr double kMarginPercentMax = 50;
constexpr const char* kAdvisedCodecs[] = {"bf16",    "fp16", "int8", "int4",           "fp8-e4m3",
                                          "ef-sign", "1bit", "2bit", "topk:ratio=0.01"};
// Caches and memory have rates of their own.
constexpr uint64_t kMeasuredBytes[] = {64 << 10, 1 << 20, 16 << 20, 64 << 20};
constexpr double kPassesSeconds = 0.02;  // of each kind and size

void add_codec_options(CLI::App& sub, AdviseCommand& command) {
  sub.add_option("--codecs", command.codecs,
                 "separated by commas, such as bf16,int8,topk:ratio=0.01")
      ->delimiter(',');
  sub.add_option("--rates", command.rates_path,
                 "what braid-bench codecs --json prints, of one size or several (default: rates "
                 "are measured here)")
      ->type_name(kFileValue);
  sub.add_option("--encode-threads", command.encode_threads,
                 "cores of a node that encode, 0.5 where two nodes share one (default: the "
                 "daemon's transport.io_threads; without --job 1)")
      ->check(is_number(kEncodeThreadsMin, kEncodeThreadsMax));
  sub.add_option("--margin", command.margin_percent,
                 "percent of the step that a codec must save to pay")
      ->capture_default_str()
      ->check(is_number(0, kMarginPercentMax));
}

// A codec that was not asked for by name, and does not fit, is left out with a warning.
Result<std::vector<CodecSpec>> specs_of(const AdviseCommand& command, uint32_t nodes,
                                        std::vector<std::string>& warnings) {
  std::vector<CodecSpec> specs;
  for (const std::string& text : join_codec_words(command.codecs)) {
    const auto spec = parse_codec_spec(text);
    if (!spec) return spec.status().with_context("--codecs");
    // It is a row of its own in any case.
    if (spec->kind == CodecKind::None || std::ranges::count(specs, *spec) > 0) continue;
    BRAID_RETURN_IF_ERROR(check_nodes(*spec, nodes));
    specs.push_back(*spec);
  }
  if (!command.codecs.empty()) return specs;
  for (const char* text : kAdvisedCodecs) {
    const auto spec = parse_codec_spec(text);
    if (!spec) return spec.status();
    if (const Status fits = check_nodes(*spec, nodes); !fits) {
      warnings.push_back(fits.message() + "; it is left out");
      continue;
    }
    specs.push_back(*spec);
  }
  return specs;
}

Result<std::vector<CodecTimes>> measure(const std::vector<CodecSpec>& specs, uint32_t nodes) {
  const PassTimer timer{.clock = thread_cpu_clock, .budget_seconds = kPassesSeconds};
  const std::vector<float> gradient = make_gradient(*std::ranges::max_element(kMeasuredBytes) / 4);
  std::vector<float> sums(gradient.size());
  std::vector<CodecTimes> all;
  for (const CodecSpec& spec : specs) {
    for (const uint64_t bytes : kMeasuredBytes) {
      const uint64_t count = bytes / sizeof(float);
      const auto times = measure_codec(spec, std::span(gradient).first(count),
                                       std::span(sums).first(count), timer, nodes);
      if (!times) return times.status();
      all.push_back(*times);
    }
  }
  return all;
}

Result<std::vector<CodecProfile>> profiles_of(const std::vector<CodecSpec>& specs,
                                              const AdviseCommand& command, uint32_t nodes) {
  const bool from_file = !command.rates_path.empty();
  const auto times = from_file ? load_codec_times(command.rates_path) : measure(specs, nodes);
  if (!times) return times.status();
  std::vector<CodecProfile> profiles;
  for (const CodecSpec& spec : specs) {
    std::vector<CodecTimes> own;
    std::ranges::copy_if(*times, std::back_inserter(own),
                         [&spec](const CodecTimes& one) { return one.codec == to_string(spec); });
    if (own.empty()) {
      return make_status(StatusCode::NotFound,
                         "{}: has no rates of {}; right is a line of braid-bench codecs --json "
                         "--codec {}, or --codecs without it",
                         command.rates_path, to_string(spec), to_string(spec));
    }
    auto profile = profile_of(spec, own, nodes);
    if (!profile) return profile.status();
    profiles.push_back(std::move(profile).value());
  }
  return profiles;
}

// That its groups travel with, each once.
std::vector<std::string> codecs_of(const LiveSet& set) {
  std::vector<std::string> codecs;
  for (const LiveSet::Codec& codec : set.codecs) {
    if (codec.name != "none" && std::ranges::count(codecs, codec.name) == 0)
      codecs.push_back(codec.name);
  }
  return codecs;
}

}  // namespace

std::vector<std::string> join_codec_words(const std::vector<std::string>& words) {
  std::vector<std::string> codecs;
  for (const std::string& word : words) {
    const bool is_parameter = word.find('=') < word.find(':');
    if (is_parameter && !codecs.empty()) {
      codecs.back() += ',' + word;
    } else {
      codecs.push_back(word);
    }
  }
  return codecs;
}

CLI::App* add_advise_command(CLI::App& app, AdviseCommand& command) {
  CLI::App* sub = app.add_subcommand(
      "advise", "what it would bring to send the gradients of a trace, or of a job, encoded");
  CLI::Option* trace =
      sub->add_option("--trace", command.trace_path, "the trace, as JSON (docs/planning.md)")
          ->type_name(kFileValue);
  CLI::Option* job = add_live_options(*sub, command.live)->excludes(trace);
  CLI::Option* cost = sub->add_option("--cost", command.cost_path,
                                      "the cost of plain all-reduces, made by braidctl fit --json "
                                      "(default: what the job's daemons "
                                      "have fitted)")
                          ->type_name(kFileValue);
  CLI::Option* nodes =
      sub->add_option("--nodes", command.nodes, "how many nodes these all-reduces were among")
          ->check(is_integer(2, kAdviseNodesMax))
          ->excludes(job);
  add_codec_options(*sub, command);
  sub->add_option("--planner", command.planner,
                  "what merges the gradients (default: the job's; without --job exact)")
      ->check(is_planner());
  sub->add_option("--streams", command.streams,
                  "units in flight at once (default: the job's; without --job 1)")
      ->check(is_integer(1, kCommandStreamsMax));
  sub->add_option("--forward", command.forward_seconds,
                  "seconds of the forward pass, instead of the trace's")
      ->check(is_not_negative());
  add_format_options(*sub, command.as_json);
  sub->parse_complete_callback([trace, job, cost, nodes] {
    if (job->count() != 0) return;
    for (const CLI::Option* one : {trace, cost, nodes}) {
      if (one->count() != 0) continue;
      throw CLI::RequiredError(
          fmt::format("--job, or --trace with --cost and --nodes: {}", one->get_name()));
    }
  });
  return sub;
}

Result<AdviseSubject> advise_subject_of(LiveSet set, const std::string& job,
                                        std::optional<FittedCost> cost) {
  BRAID_RETURN_IF_ERROR(check_measured(set, job));
  if (set.nodes < 2) {
    return make_status(StatusCode::NotFound,
                       "job '{}' runs on one node: nothing travels, so no codec has a use", job);
  }
  const std::vector<std::string> codecs = codecs_of(set);
  if (!cost && !codecs.empty()) {
    return make_status(StatusCode::NotFound,
                       "job '{}': its gradients travel with {} already, so their cost without a "
                       "codec is not measured; ask before a codec is chosen, or give --cost",
                       job, fmt::join(codecs, ", "));
  }
  if (!cost && !set.cost) {
    return make_status(StatusCode::NotFound,
                       "job '{}': no cost is fitted yet: {} steps are complete, and plan {} was "
                       "made without one; ask again later, or give --cost",
                       job, set.steps_measured, set.plan);
  }
  if (!cost && !std::isfinite(wire_bandwidth(*set.cost, set.nodes))) {
    return make_status(StatusCode::NotFound,
                       "job '{}': by the fitted cost more bytes take no more time, so a codec "
                       "would save none: other work on the machine has probably hidden the cost of "
                       "bytes; ask again later, or give --cost",
                       job);
  }
  const bool is_plain = codecs.empty();
  AdviseSubject subject{std::move(set.trace), cost ? *std::move(cost) : *std::move(set.cost)};
  subject.cost_source = fmt::format("job '{}'", job);
  subject.nodes = set.nodes;
  if (find_planner(set.planner)) subject.planner = set.planner;
  subject.planning = daemon_planner_options(set.streams);
  subject.encode_threads = set.io_threads;
  if (is_plain) subject.carry_seconds_per_byte = set.carry_seconds_per_byte;
  if (is_plain) subject.measured_seconds = set.measured_iteration_seconds;
  return subject;
}

namespace {

Result<AdviseSubject> subject_of(const DaemonSource& daemon, const AdviseCommand& command) {
  std::optional<FittedCost> cost;
  if (!command.cost_path.empty()) {
    auto loaded = load_cost(command.cost_path);
    if (!loaded) return loaded.status();
    cost = std::move(loaded).value();
  }
  if (!command.live.job.empty()) {
    auto set = ask_for_set(daemon, command.live);
    if (!set) return set.status();
    return advise_subject_of(std::move(set).value(), command.live.job, std::move(cost));
  }
  auto trace = load_trace(command.trace_path);
  if (!trace) return trace.status();
  name_after_file(*trace, command.trace_path);
  AdviseSubject subject{std::move(trace).value(), *std::move(cost)};
  subject.nodes = *command.nodes;
  return subject;
}

// What the options say instead.
Result<AdviseSubject> prepare(const DaemonSource& daemon, const AdviseCommand& command) {
  auto subject = subject_of(daemon, command);
  if (!subject) return subject.status();
  if (!command.cost_path.empty()) subject->cost_source = command.cost_path;
  if (command.planner) subject->planner = *command.planner;
  if (command.streams) subject->planning.streams = *command.streams;
  if (command.encode_threads) subject->encode_threads = *command.encode_threads;
  if (command.forward_seconds) subject->trace.forward_seconds = *command.forward_seconds;
  BRAID_RETURN_IF_ERROR(check_codecs_fit(
      subject->trace, command.live.job.empty() ? command.trace_path : subject->cost_source));
  return subject;
}

}  // namespace

Result<CommandOutput> run_advise(const DaemonSource& daemon, const AdviseCommand& command) {
  auto subject = prepare(daemon, command);
  if (!subject) return subject.status();
  RenderedAdvice report;
  report.measured_bandwidth = wire_bandwidth(subject->cost, subject->nodes);
  if (!std::isfinite(report.measured_bandwidth)) {
    return make_status(StatusCode::InvalidArgument,
                       "{}: bands[{}].seconds_per_byte: 0 is no bandwidth; right is more than 0",
                       subject->cost_source, subject->cost.bands().size() - 1);
  }
  const auto planner = find_planner(subject->planner);
  if (!planner) return planner.status();
  const auto specs = specs_of(command, subject->nodes, report.warnings);
  if (!specs) return specs.status();
  const auto codecs = profiles_of(*specs, command, subject->nodes);
  if (!codecs) return codecs.status();
  report.options.cost.nodes = subject->nodes;
  report.options.cost.encode_threads = subject->encode_threads;
  report.options.cost.carry_seconds_per_byte = subject->carry_seconds_per_byte;
  report.options.planning = subject->planning;
  report.options.margin = command.margin_percent / 100;
  report.planner = subject->planner;
  report.rates = command.rates_path.empty() ? "measured here" : "of " + command.rates_path;
  report.measured_seconds = subject->measured_seconds;
  const Workload workload = workload_of(subject->trace);
  const OccupyingCost occupying(subject->cost);  // as the job's daemons plan
  const CostModel& wire =
      command.live.job.empty() ? static_cast<const CostModel&>(subject->cost) : occupying;
  report.advice = advise(workload, wire, *codecs, **planner, report.options);
  report.sweep = sweep_bandwidths(workload, wire, *codecs, **planner, report.options);
  std::vector<uint64_t> sizes;
  for (const AdviceGroup& group : report.advice.groups) sizes.push_back(group.bytes);
  if (const auto warning = extrapolation_warning(subject->cost, sizes, subject->cost_source)) {
    report.warnings.push_back(*warning);
  }
  if (const auto warning = misprediction_warning(report)) report.warnings.push_back(*warning);
  report.trace = std::move(subject->trace);
  return CommandOutput{command.as_json ? advice_json(report) : advice_table(report),
                       report.warnings};
}

}  // namespace braid
