// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_advise.h"

#include <algorithm>
#include <cmath>

#include <CLI/CLI.hpp>

#include "advise/codec_times_json.h"
#include "braidctl/advice_report.h"
#include "plan/planner.h"

namespace braid {
namespace {

constexpr uint32_t kAdviseNodesMax = 65'536;
constexpr uint32_t kEncodeThreadsMax = 1024;
constexpr double kMarginPercentMax = 50;
constexpr const char* kAdvisedCodecs[] = {"bf16",    "fp16", "int8", "int4",           "fp8-e4m3",
                                          "ef-sign", "1bit", "2bit", "topk:ratio=0.01"};
// Caches and memory have rates of their own.
constexpr uint64_t kMeasuredBytes[] = {64 << 10, 1 << 20, 16 << 20};
constexpr double kPassesSeconds = 0.02;  // of each kind and size

void add_codec_options(CLI::App& sub, AdviseCommand& command) {
  sub.add_option("--codecs", command.codecs,
                 "separated by commas, such as bf16,int8,topk:ratio=0.01")
      ->delimiter(',');
  sub.add_option("--rates", command.rates_path,
                 "what braid-bench codecs --json prints, of one size or several (default: rates "
                 "are measured here)");
  sub.add_option("--encode-threads", command.encode_threads, "threads of a node that encode")
      ->capture_default_str()
      ->check(is_integer(1, kEncodeThreadsMax));
  sub.add_option("--margin", command.margin_percent,
                 "percent of the step that a codec must save to pay")
      ->capture_default_str()
      ->check(is_number(0, kMarginPercentMax));
}

// Of a codec that was not asked for by name, what does not fit is left out with a warning.
Result<std::vector<CodecSpec>> specs_of(const AdviseCommand& command,
                                        std::vector<std::string>& warnings) {
  std::vector<CodecSpec> specs;
  for (const std::string& text : join_codec_words(command.codecs)) {
    const auto spec = parse_codec_spec(text);
    if (!spec) return spec.status().with_context("--codecs");
    // It is a row of its own in any case.
    if (spec->kind == CodecKind::None || std::ranges::count(specs, *spec) > 0) continue;
    BRAID_RETURN_IF_ERROR(check_nodes(*spec, command.nodes));
    specs.push_back(*spec);
  }
  if (!command.codecs.empty()) return specs;
  for (const char* text : kAdvisedCodecs) {
    const auto spec = parse_codec_spec(text);
    if (!spec) return spec.status();
    if (const Status fits = check_nodes(*spec, command.nodes); !fits) {
      warnings.push_back(fits.message() + "; it is left out");
      continue;
    }
    specs.push_back(*spec);
  }
  return specs;
}

Result<std::vector<CodecTimes>> measure(const std::vector<CodecSpec>& specs) {
  const PassTimer timer{.clock = thread_cpu_clock, .budget_seconds = kPassesSeconds};
  const std::vector<float> gradient = make_gradient(*std::ranges::max_element(kMeasuredBytes) / 4);
  std::vector<float> sums(gradient.size());
  std::vector<CodecTimes> all;
  for (const CodecSpec& spec : specs) {
    for (const uint64_t bytes : kMeasuredBytes) {
      const uint64_t count = bytes / sizeof(float);
      const auto times = measure_codec(spec, std::span(gradient).first(count),
                                       std::span(sums).first(count), timer);
      if (!times) return times.status();
      all.push_back(*times);
    }
  }
  return all;
}

Result<std::vector<CodecProfile>> profiles_of(const std::vector<CodecSpec>& specs,
                                              const AdviseCommand& command) {
  const bool from_file = !command.rates_path.empty();
  const auto times = from_file ? load_codec_times(command.rates_path) : measure(specs);
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
    auto profile = profile_of(spec, own, command.nodes);
    if (!profile) return profile.status();
    profiles.push_back(std::move(profile).value());
  }
  return profiles;
}

Status check_trace(const Trace& trace, const std::string& path) {
  for (size_t i = 0; i < trace.tensors.size(); ++i) {
    if (trace.tensors[i].dtype == DataType::Float32) continue;
    return make_status(StatusCode::InvalidArgument,
                       "{}: names[{}] '{}' is {}; codecs encode float32 alone", path, i,
                       trace.tensors[i].name, to_string(trace.tensors[i].dtype));
  }
  return Status::ok();
}

std::string render_advice(const RenderedAdvice& report, OutputFormat format) {
  switch (format) {
    case OutputFormat::Table:
      return advice_table(report);
    case OutputFormat::Json:
      return advice_json(report);
    case OutputFormat::Svg:
      return advice_svg(report);
  }
  return {};
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
  CLI::App* sub =
      app.add_subcommand("advise", "what it would bring to send a trace's gradients encoded");
  sub->add_option("--trace", command.trace_path, "the trace, as JSON (docs/planning.md)")
      ->required();
  sub->add_option("--cost", command.cost_path,
                  "the cost of plain all-reduces, made by braidctl fit --json")
      ->required();
  sub->add_option("--nodes", command.nodes, "how many nodes these all-reduces were among")
      ->required()
      ->check(is_integer(2, kAdviseNodesMax));
  add_codec_options(*sub, command);
  sub->add_option("--planner", command.planner, planner_names())
      ->capture_default_str()
      ->check(is_planner());
  add_streams_option(*sub, command.streams);
  sub->add_option("--forward", command.forward_seconds,
                  "seconds of the forward pass, instead of the trace's")
      ->check(is_not_negative());
  add_format_option(*sub, command.format);
  return sub;
}

Result<CommandOutput> run_advise(const AdviseCommand& command) {
  RenderedAdvice report;
  auto trace = load_trace(command.trace_path);
  if (!trace) return trace.status();
  name_after_file(*trace, command.trace_path);
  BRAID_RETURN_IF_ERROR(check_trace(*trace, command.trace_path));
  if (command.forward_seconds) trace->forward_seconds = *command.forward_seconds;
  const auto wire = load_cost(command.cost_path);
  if (!wire) return wire.status();
  report.measured_bandwidth = wire_bandwidth(*wire, command.nodes);
  if (!std::isfinite(report.measured_bandwidth)) {
    return make_status(StatusCode::InvalidArgument,
                       "{}: bands[{}].seconds_per_byte: 0 is no bandwidth; right is more than 0",
                       command.cost_path, wire->bands().size() - 1);
  }
  const auto planner = find_planner(command.planner);
  if (!planner) return planner.status();
  const auto specs = specs_of(command, report.warnings);
  if (!specs) return specs.status();
  const auto codecs = profiles_of(*specs, command);
  if (!codecs) return codecs.status();
  report.options.cost.nodes = command.nodes;
  report.options.cost.encode_threads = command.encode_threads;
  report.options.streams = command.streams;
  report.options.margin = command.margin_percent / 100;
  report.planner = command.planner;
  report.rates = command.rates_path.empty() ? "measured here" : "of " + command.rates_path;
  const Workload workload = workload_of(*trace);
  report.advice = advise(workload, *wire, *codecs, **planner, report.options);
  report.sweep = sweep_bandwidths(workload, *wire, *codecs, **planner, report.options);
  std::vector<uint64_t> sizes;
  for (const AdviceGroup& group : report.advice.groups) sizes.push_back(group.bytes);
  if (const auto warning = extrapolation_warning(*wire, sizes, command.cost_path)) {
    report.warnings.push_back(*warning);
  }
  report.trace = std::move(trace).value();
  return CommandOutput{render_advice(report, command.format), report.warnings};
}

}  // namespace braid
