// SPDX-License-Identifier: Apache-2.0
// braid-bench: measures braid from a trainer's place. Start it once per rank, as a training script.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "base/version.h"
#include "bench/allreduce.h"
#include "bench/replay_command.h"

namespace {

constexpr int kExitFailed = 1;
constexpr uint32_t kTimeoutSecondsMax = 3600;

int finish(const braid::Status& status) {
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "braid-bench: %s\n", status.message().c_str());
  return kExitFailed;
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
  CLI11_PARSE(app, argc, argv);
  if (replay->parsed()) return finish(braid::bench::run_replay(replay_options));

  const auto parsed = braid::bench::parse_dtype(dtype);
  if (!parsed) return finish(parsed.status());
  options.dtype = *parsed;
  options.timeout_ms = timeout_seconds * 1000;
  return finish(braid::bench::run_all_reduce(options));
}
