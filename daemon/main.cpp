// SPDX-License-Identifier: Apache-2.0
// braidd: the gradient communication daemon of a node.
#include <csignal>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/descriptor_table.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/version.h"
#include "config/load.h"
#include "config/print.h"
#include "daemon/daemon.h"
#include "daemon/daemon_options.h"
#include "daemon/node_check.h"

namespace {

constexpr int kExitBadConfig = 2;
constexpr int kExitCannotStart = 1;

// Whether a daemon can start here with a configuration that is right in itself.
bool check(const braid::DaemonConfig& config, const std::optional<std::string>& file) {
  const std::string name = file.value_or("the default configuration");
  std::printf("%s: good\n", name.c_str());
  std::fflush(stdout);  // what UCX says comes behind it
  (void)braid::init_log({.level = "error"});
  const std::vector<std::string> troubles = braid::find_node_troubles(config);
  if (!troubles.empty()) {
    std::fprintf(
        stderr,
        "but on this machine braidd would not start with it as user %u (only --check-node takes "
        "this for an error, because the configuration may be meant for another machine):\n",
        ::geteuid());
    for (const std::string& trouble : troubles) std::fprintf(stderr, "  %s\n", trouble.c_str());
  }
  std::printf(
      "checked: keys and values; on this machine files, group, interfaces, addresses and what UCX "
      "can use. Not checked: whether ports and the socket are free, and what other nodes have\n");
  return troubles.empty();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("braidd: the gradient communication daemon of a node");
  app.set_version_flag("--version", std::string("braidd ") + braid::kBraidVersion);
  std::string file;
  std::vector<std::string> settings;
  bool check_config = false;
  bool check_node = false;
  bool print_config = false;
  app.add_option(
      "--config", file,
      std::string("configuration file (default: ") + braid::kDefaultConfigFile + ", if it exists)");
  app.add_option("--set", settings, "KEY=VALUE, over the file; may be given several times")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  app.add_flag("--check-config", check_config,
               "check the configuration, say what this machine lacks for it, and exit");
  app.add_flag("--check-node", check_node,
               "the same, and an error if this machine lacks anything for it");
  app.add_flag("--print-config", print_config,
               "print every key with its value and meaning, and exit");
  CLI11_PARSE(app, argc, argv);

  braid::DaemonInvocation invocation;
  invocation.config_file = file.empty() ? braid::find_default_config_file() : std::optional(file);
  invocation.settings = settings;
  const braid::LoadedConfig loaded = braid::load_config(invocation.config_file, settings);
  if (!loaded.is_ok()) {
    std::fprintf(stderr, "%s\n", loaded.error_text().c_str());
    return kExitBadConfig;
  }
  if (print_config) {
    std::fputs(braid::print_config(loaded.config).c_str(), stdout);
    return 0;
  }
  if (check_config || check_node) {
    const bool fits = check(loaded.config, invocation.config_file);
    return fits || !check_node ? 0 : kExitCannotStart;
  }

  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file at its limit (ulimit -f) is an error, as a full disk is
  braid::raise_descriptor_limit();
  braid::reserve_descriptor_table();
  braid::settle_heap();
  if (const braid::Status status = braid::init_log(braid::log_options(loaded.config)); !status) {
    std::fprintf(stderr, "braidd: %s\n", status.message().c_str());
    return kExitCannotStart;
  }
  auto daemon = braid::Daemon::create(std::move(invocation), loaded.config);
  if (!daemon) {
    BRAID_LOG_ERROR("braidd cannot start: {}", daemon.status().message());
    return kExitCannotStart;
  }
  (*daemon)->run();
  return 0;
}
