// SPDX-License-Identifier: Apache-2.0
// braidd: the gradient communication daemon of a node.
#include <csignal>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "base/descriptor_table.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/version.h"
#include "config/load.h"
#include "config/print.h"
#include "daemon/daemon.h"
#include "daemon/daemon_options.h"

namespace {

constexpr int kExitBadConfig = 2;
constexpr int kExitCannotStart = 1;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("braidd: the gradient communication daemon of a node");
  app.set_version_flag("--version", std::string("braidd ") + braid::kBraidVersion);
  std::string file;
  std::vector<std::string> settings;
  bool check_config = false;
  bool print_config = false;
  app.add_option(
      "--config", file,
      std::string("configuration file (default: ") + braid::kDefaultConfigFile + ", if it exists)");
  app.add_option("--set", settings, "KEY=VALUE, over the file; may be given several times")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  app.add_flag("--check-config", check_config, "check the configuration and exit");
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
  if (check_config) {
    std::printf("%s: good\n", invocation.config_file.value_or("the default configuration").c_str());
    return 0;
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
