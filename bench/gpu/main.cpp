// SPDX-License-Identifier: Apache-2.0
// braid-gpu-probe: asks CUDA's driver what braid's GPU path relies on. bench/gpu/measure starts it.
// Each line it says is a row of JSON. A probe that the driver refuses is a row "refused", and the
// others go on.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "arguments/parse_arguments.h"
#include "bench/gpu/probes.h"

namespace {

using braid::Result;
using braid::Status;
using namespace braid::gpu_probe;

using Probe = std::function<Status(const Gpu&, const Say&)>;
using Probes = std::vector<std::pair<const char*, Probe>>;

void say_row(const nlohmann::json& row) {
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

Probes all_probes(const std::string& program) {
  return {{"device", probe_device},
          {"context-memory",
           [program](const Gpu& gpu, const Say& say) {
             return probe_context_memory(gpu, say, program);
           }},
          {"register", probe_registration},
          {"copy", probe_copies},
          {"words", probe_words},
          {"host-functions", probe_host_functions},
          {"export",
           [program](const Gpu& gpu, const Say& say) { return probe_export(gpu, say, program); }},
          {"queue-depth", probe_queue_depth},
          // The last ones: they may end the process.
          {"holder", probe_holders},
          {"blocked-streams", probe_blocked_streams}};
}

int failed(const Status& status) {
  std::fprintf(stderr, "braid-gpu-probe: %s\n", status.message().c_str());
  return EXIT_FAILURE;
}

int run(const Probes& probes, const std::vector<std::string>& only) {
  const Result<std::unique_ptr<Gpu>> gpu = Gpu::open();
  if (!gpu.is_ok()) return failed(gpu.status());
  for (const auto& [name, probe] : probes) {
    if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) continue;
    const Status status = probe(**gpu, say_row);
    if (!status) say_row({{"test", "refused"}, {"probe", name}, {"error", status.message()}});
  }
  return EXIT_SUCCESS;
}

// Keeps a context until it is killed.
int hold_context() {
  const Result<std::unique_ptr<Gpu>> gpu = Gpu::open();
  if (!gpu.is_ok()) return failed(gpu.status());
  std::puts("held");
  std::fflush(stdout);
  ::pause();
  return EXIT_SUCCESS;
}

int import_from(int fd, size_t bytes) {
  const Result<std::unique_ptr<Gpu>> gpu = Gpu::open();
  if (!gpu.is_ok()) return failed(gpu.status());
  const Status status = import_memory(**gpu, say_row, fd, bytes);
  return status ? EXIT_SUCCESS : failed(status);
}

std::string own_path() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

}  // namespace

int main(int argc, char** argv) {
  const Probes probes = all_probes(own_path());
  std::vector<std::string> names;
  for (const auto& [name, probe] : probes) names.emplace_back(name);
  CLI::App app("Asks CUDA's driver what braid's GPU path relies on; says rows of JSON");
  app.require_subcommand(0, 1);
  std::vector<std::string> only;
  app.add_option("--only", only, "these probes, comma-separated (all)")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  int fd = -1;
  size_t bytes = 0;
  auto* hold = app.add_subcommand("hold", "keeps a context (a part of the probe)");
  auto* import = app.add_subcommand("import", "imports memory (a part of the probe)");
  import->add_option("fd", fd)->required();
  import->add_option("bytes", bytes)->required();
  if (const auto code = braid::parse_arguments(app, argc, argv)) return *code;
  if (hold->parsed()) return hold_context();
  if (import->parsed()) return import_from(fd, bytes);
  return run(probes, only);
}
