// SPDX-License-Identifier: Apache-2.0
// braid-bench: measures braid from a trainer's place. Start it once per rank, as a training script;
// `codecs` alone.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "base/version.h"
#include "bench/allreduce.h"
#include "bench/codecs.h"
#include "bench/replay_command.h"

namespace {

constexpr int kExitFailed = 1;
constexpr uint32_t kTimeoutSecondsMax = 3600;

int finish(const braid::Status& status) {
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "braid-bench: %s\n", status.message().c_str());
  return kExitFailed;
}

// The rates of codecs need no daemon and no other rank.
CLI::App* add_codecs_command(CLI::App& app, braid::bench::CodecsOptions& options) {
  CLI::App* sub = app.add_subcommand(
      "codecs", "encodes and decodes gradients on one core: rates beside those of memory");
  sub->add_option("--bytes", options.bytes, "bytes of float32; 64KiB and 25MB are understood")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  sub->add_option("--codec", options.codecs,
                  "one or several, such as topk:ratio=0.01 (default: all of them)");
  sub->add_option("--repeats", options.repeats, "measured passes, of which the fastest counts")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1'000'000u));
  sub->add_option("--nodes", options.nodes,
                  "rates of the sums of so many nodes' parts, too, where they are encoded by "
                  "themselves")
      ->check(CLI::Range(1u, 127u));
  sub->add_option("--vectors", options.vectors, "widest, avx2 or baseline")->capture_default_str();
  sub->add_flag("--json", options.as_json, "one JSON object per codec");
  return sub;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("braid-bench: measures braid from a trainer's place; start it once per rank");
  app.set_version_flag("--version", std::string("braid-bench ") + braid::kBraidVersion);
  app.require_subcommand(1);

  braid::bench::AllReduceOptions options;
  std::string dtype = "float32";
  uint32_t timeout_seconds = options.timeout_ms / 1000;
  CLI::App* allreduce =
      app.add_subcommand("allreduce", "all-reduces of the given sizes, each result checked");
  allreduce
      ->add_option("--sizes", options.sizes,
                   "bytes, separated by commas; 64KiB and 25MB are understood")
      ->required()
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  allreduce
      ->add_option("--dtype", dtype, "float32, float64, float16, bfloat16, int32, int64 or uint8")
      ->capture_default_str();
  allreduce->add_option("--iterations", options.iterations, "measured iterations per size")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1'000'000u));
  allreduce->add_option("--warmup", options.warmup, "iterations before them")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1'000'000u));
  allreduce
      ->add_option("--timeout", timeout_seconds,
                   "seconds until an operation, or opening the job, has failed")
      ->capture_default_str()
      ->check(CLI::Range(1u, kTimeoutSecondsMax));
  allreduce->add_option(
      "--socket", options.socket_path,
      "the daemon's socket (default: $BRAID_SOCKET, else /run/braid/braidd.sock)");
  allreduce->add_flag("--json", options.as_json, "one JSON object per size");
  braid::bench::ReplayOptions replay_options;
  const CLI::App* replay = braid::bench::add_replay_command(app, replay_options);
  braid::bench::CodecsOptions codecs_options;
  const CLI::App* codecs = add_codecs_command(app, codecs_options);
  CLI11_PARSE(app, argc, argv);
  if (codecs->parsed()) return finish(braid::bench::run_codecs(codecs_options));
  if (replay->parsed()) return finish(braid::bench::run_replay(replay_options));

  const auto parsed = braid::bench::parse_dtype(dtype);
  if (!parsed) return finish(parsed.status());
  options.dtype = *parsed;
  options.timeout_ms = timeout_seconds * 1000;
  return finish(braid::bench::run_all_reduce(options));
}
