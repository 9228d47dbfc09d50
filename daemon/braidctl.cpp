// SPDX-License-Identifier: Apache-2.0
// braidctl: asks the daemon of this node.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "base/version.h"
#include "client/status_client.h"
#include "daemon/status_view.h"

namespace {

constexpr uint32_t kTimeoutMs = 5000;
constexpr int kExitFailed = 1;

int print_status(const std::string& socket, bool as_json) {
  const auto json = braid::query_status(braid::daemon_socket_path(socket), kTimeoutMs);
  if (!json) {
    std::fprintf(stderr, "braidctl: %s\n", json.status().message().c_str());
    return kExitFailed;
  }
  if (as_json) {
    std::printf("%s\n", json->c_str());
    return 0;
  }
  const auto status = braid::parse_status(*json);
  if (!status) {
    std::fprintf(stderr, "braidctl: %s\n", status.status().message().c_str());
    return kExitFailed;
  }
  std::fputs(braid::render_status(*status).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("braidctl: asks the braidd of this node");
  app.set_version_flag("--version", std::string("braidctl ") + braid::kBraidVersion);
  app.require_subcommand(1);
  std::string socket;
  app.add_option("--socket", socket,
                 "the daemon's socket (default: $BRAID_SOCKET, else /run/braid/braidd.sock)");
  CLI::App* status = app.add_subcommand("status", "print version, rails, links and jobs");
  bool as_json = false;
  status->add_flag("--json", as_json, "print them as JSON");
  CLI11_PARSE(app, argc, argv);
  return print_status(socket, as_json);
}
