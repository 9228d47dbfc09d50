// SPDX-License-Identifier: Apache-2.0
#include "bench/collective_command.h"

#include <string>
#include <vector>

#include "arguments/complete_words.h"
#include "arguments/format_option.h"
#include "bench/command_options.h"

namespace braid::bench {
namespace {

// Sets `value` to what `parse` makes of the option's text.
template <typename T>
CLI::Option* add_named_option(CLI::App& command, const std::string& names, T& value,
                              Result<T> (*parse)(std::string_view),
                              const std::vector<std::string_view>& known,
                              const std::string& about) {
  return command
      .add_option_function<std::string>(
          names, [&value, parse](const std::string& text) { value = *parse(text); }, about)
      ->default_str(nccl_name(value))
      ->check(CLI::Validator(
          [parse](const std::string& text) {
            const auto parsed = parse(text);
            return parsed ? std::string() : parsed.status().message();
          },
          choices_text(known)));
}

void add_size_options(CLI::App& command, CollectiveOptions& options) {
  SizeRange& range = options.range;
  command
      .add_option("-b,--minbytes", range.min_bytes, "the first size; K, M and G are powers of two")
      ->capture_default_str()
      ->transform(as_bytes());
  command.add_option("-e,--maxbytes", range.max_bytes, "the last size, or the one before it")
      ->capture_default_str()
      ->transform(as_bytes());
  CLI::Option* step =
      command.add_option("-i,--stepbytes", range.step_bytes, "from one size to the next")
          ->capture_default_str()
          ->transform(as_bytes());
  CLI::Option* factor =
      command
          .add_option("-f,--stepfactor", range.step_factor, "the same as a factor, instead of -i")
          ->check(CLI::Range(2u, 65'535u))
          ->excludes(step);
  add_sizes_option(command, options.sizes, "sizes as they are, separated by commas, instead of -b");
  for (CLI::Option* one :
       {command.get_option("--minbytes"), command.get_option("--maxbytes"), step, factor})
    one->excludes(command.get_option("--sizes"));
}

void add_collective_command(CLI::App& app, const CollectiveKind& kind, CollectiveOptions& options) {
  CLI::App* command = app.add_subcommand(kind.name, kind.about);
  CollectiveSetup& setup = options.setup;
  add_size_options(*command, options);
  add_named_option(*command, "-d,--datatype", setup.dtype, parse_datatype, datatype_names(),
                   "the elements' type");
  if (kind.is_reducing)
    add_named_option(*command, "-o,--op", setup.reduction, parse_op, op_names(), "the reduction");
  if (has_root(kind.collective)) {
    command->add_option("-r,--root", setup.root, "the rank that gives or gets all")
        ->capture_default_str()
        ->check(CLI::Range(0u, 65'535u));
  }
  add_iterations_options(*command, options.course.iterations, options.course.warmup);
  command
      ->add_option("-c,--check", options.course.checks,
                   "iterations behind them whose results are checked; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1'000'000u));
  command->add_flag(
      "--counts", options.counts,
      "also count system calls, wake-ups and bytes copied, in as many operations in a "
      "row");
  add_job_options(*command, options.timeout_ms, options.socket_path);
  add_format_options(*command, options.as_json, "one JSON object per size");
  command->callback([&setup, kind] { setup.kind = kind; });
}

}  // namespace

void add_collective_commands(CLI::App& app, CollectiveOptions& options) {
  for (const CollectiveKind& kind : collective_kinds()) add_collective_command(app, kind, options);
}

}  // namespace braid::bench
