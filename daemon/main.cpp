// SPDX-License-Identifier: Apache-2.0
// braidd: the gradient communication daemon of a node.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "arguments/complete_words.h"
#include "arguments/parse_arguments.h"
#include "base/descriptor_table.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/version.h"
#include "config/config_keys.h"
#include "config/environment.h"
#include "config/load.h"
#include "config/personal.h"
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

constexpr const char* kSettingValue = "SETTING";

// Beginnings of settings: "transport.rails=".
std::vector<std::string> setting_names(const braid::GivenValues& /*given*/) {
  std::vector<std::string> names;
  for (const braid::ConfigKey& key : braid::config_keys()) {
    if (!key.is_debug()) names.push_back(std::string(key.name) + '=');
  }
  return names;
}

struct CommandLine {
  std::string file;
  std::vector<std::string> settings;
  bool is_personal = false;
  std::string folder;
  bool check_config = false;
  bool print_config = false;
};

void add_options(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", std::string("braidd ") + braid::kBraidVersion);
  app.add_option("--config", line.file,
                 std::string("configuration file (default: ") + braid::kDefaultConfigFile +
                     ", if it exists)")
      ->type_name(braid::kFileValue);
  app.add_option("--set", line.settings, "KEY=VALUE, over the file; may be given several times")
      ->type_name(kSettingValue)
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  auto* personal = app.add_flag(
      "--personal", line.is_personal,
      "a daemon for this user alone, who needs no configuration and no group for it: its socket "
      "is in $XDG_RUNTIME_DIR/braid or /tmp/braid-UID, the kernel chooses its ports, and it ends "
      "when nobody uses it any more. --config and --set count over that");
  app.add_option("--folder", line.folder,
                 "with --personal: the folder for the socket and braidd.json, which tells process, "
                 "socket, ports and page; closed to others (mode 0700), made if it is missing")
      ->type_name(braid::kFolderValue)
      ->needs(personal);
  app.add_flag("--check-config", line.check_config,
               "check the configuration as a start on this machine would, and exit: 0 if it is "
               "good, 1 if this machine lacks something for it, 2 if it is wrong");
  app.add_flag("--print-config", line.print_config,
               "print every key with its value and meaning, and exit");
}

braid::DaemonInvocation invocation_of(const CommandLine& line) {
  braid::DaemonInvocation invocation;
  invocation.settings = line.settings;
  invocation.environment = braid::select_environment(environ);
  if (!line.file.empty()) invocation.config_file = line.file;
  if (!line.is_personal) {
    if (line.file.empty()) invocation.config_file = braid::find_default_config_file();
    return invocation;
  }
  const std::string usual = braid::personal_folder(std::getenv("XDG_RUNTIME_DIR"), ::geteuid());
  std::string folder =
      line.folder.empty() ? usual : std::filesystem::absolute(line.folder).string();
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (std::filesystem::path(folder).parent_path() == usual)
    invocation.personal_folder_above = usual;
  invocation.defaults = braid::personal_defaults(folder);
  invocation.personal_folder = std::move(folder);
  return invocation;
}

// Runs until the daemon ends; the exit code.
int serve(braid::DaemonInvocation invocation, const braid::DaemonConfig& config) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file at its limit (ulimit -f) is an error, as a full disk is
  braid::raise_descriptor_limit();
  braid::reserve_descriptor_table();
  braid::settle_heap();
  if (const braid::Status status = braid::init_log(braid::log_options(config)); !status) {
    std::fprintf(stderr, "braidd: %s\n", status.message().c_str());
    return kExitCannotStart;
  }
  const std::string folder = invocation.personal_folder;
  braid::Status started;
  if (!folder.empty()) started = braid::make_personal_folder(folder);
  if (started) {
    auto daemon = braid::Daemon::create(std::move(invocation), config);
    if (daemon) {
      (*daemon)->run();
      return 0;
    }
    started = daemon.status();
    if (!folder.empty()) (void)::rmdir(folder.c_str());  // unless somebody has put something in it
  }
  BRAID_LOG_ERROR("braidd cannot start: {}", started.message());
  return kExitCannotStart;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("braidd: the gradient communication daemon of a node");
  CommandLine line;
  add_options(app, line);
  if (const auto code = braid::parse_arguments(app, argc, argv, {{kSettingValue, setting_names}}))
    return *code;

  braid::DaemonInvocation invocation = invocation_of(line);
  const braid::LoadedConfig loaded = braid::load_config(
      invocation.config_file, line.settings, invocation.environment, invocation.defaults);
  if (line.check_config) return check(loaded, invocation.config_file);
  if (!loaded.is_ok()) {
    std::fprintf(stderr, "%s\n", loaded.error_text().c_str());
    return kExitBadConfig;
  }
  if (line.print_config) {
    std::fputs(braid::print_config(loaded.config).c_str(), stdout);
    return 0;
  }
  return serve(std::move(invocation), loaded.config);
}
