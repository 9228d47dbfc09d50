// SPDX-License-Identifier: Apache-2.0
// braidd: the gradient communication daemon of a node.
#include <csignal>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "arguments/parse_arguments.h"
#include "base/descriptor_table.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/version.h"
#include "config/environment.h"
#include "config/load.h"
#include "config/print.h"
#include "daemon/daemon.h"
#include "daemon/daemon_options.h"
#include "daemon/node_check.h"

namespace {

constexpr int kExitBadConfig = 2;
constexpr int kExitCannotStart = 1;

// Says all that keeps a daemon with this configuration from starting here, a line each, and returns
// the exit status: 2 where a mistake is one on every machine, 1 where only this machine lacks
// something.
int check(const braid::LoadedConfig& loaded, const std::optional<std::string>& file) {
  const std::string name = file.value_or("the default configuration");
  for (const std::string& error : loaded.errors) std::fprintf(stderr, "%s\n", error.c_str());
  (void)braid::init_log({.level = "error"});
  const braid::NodeCheck node = braid::check_node(loaded);
  for (const std::string& trouble : node.troubles) std::fprintf(stderr, "%s\n", trouble.c_str());
  std::fflush(stderr);
  const int status = !loaded.is_ok()          ? kExitBadConfig
                     : !node.troubles.empty() ? kExitCannotStart
                                              : 0;
  const char* verdicts[] = {"good", "right in itself, and braidd would not start with it", "wrong"};
  std::printf("%s: %s; on this machine, as user %u\n", name.c_str(), verdicts[status], ::geteuid());
  if (node.is_served) {
    std::printf("not checked: ports and the socket, because a daemon answers at %s\n",
                loaded.config.client.socket.c_str());
  }
  std::printf("not checked: what other nodes have\n");
  return status;
}

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
  app.add_flag("--check-config", check_config,
               "check the configuration as a start on this machine would, and exit: 0 if it is "
               "good, 1 if this machine lacks something for it, 2 if it is wrong");
  app.add_flag("--print-config", print_config,
               "print every key with its value and meaning, and exit");
  if (const auto code = braid::parse_arguments(app, argc, argv)) return *code;

  braid::DaemonInvocation invocation;
  invocation.config_file = file.empty() ? braid::find_default_config_file() : std::optional(file);
  invocation.settings = settings;
  invocation.environment = braid::select_environment(environ);
  const braid::LoadedConfig loaded =
      braid::load_config(invocation.config_file, settings, invocation.environment);
  if (check_config) return check(loaded, invocation.config_file);
  if (!loaded.is_ok()) {
    std::fprintf(stderr, "%s\n", loaded.error_text().c_str());
    return kExitBadConfig;
  }
  if (print_config) {
    std::fputs(braid::print_config(loaded.config).c_str(), stdout);
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
