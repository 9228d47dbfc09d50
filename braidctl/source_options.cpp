// SPDX-License-Identifier: Apache-2.0
#include "braidctl/source_options.h"

#include <cstdlib>
#include <utility>

#include <CLI/CLI.hpp>

#include "arguments/complete_words.h"
#include "braidctl/ctl_check.h"

namespace braid {

void add_source_options(CLI::App& app, SourceOptions& options) {
  CLI::Option* socket = app.add_option(
      "--socket", options.socket,
      "the daemon's socket (default: $BRAID_SOCKET, else /run/braid/braidd.sock, else that of your "
      "personal daemon)");
  socket->type_name(kFileValue);
  CLI::Option* host =
      app.add_option("--host", options.host,
                     "ask another node's daemon, through its page: its name or address, with :PORT "
                     "if that is not 9431")
          ->excludes(socket)
          ->check(CLI::Validator(
              [](const std::string& text) {
                const auto node = parse_peer(text);
                return node ? std::string() : node.status().message();
              },
              "NODE"));
  app.add_option("--token-file", options.token_file,
                 "the file with the page's token (default: the token in $BRAID_PAGE_TOKEN)")
      ->needs(host)
      ->type_name(kFileValue);
}

Result<DaemonSource> make_source(const SourceOptions& options) {
  if (options.host.empty()) return DaemonSource(options.socket);
  const auto node = parse_peer(options.host);
  if (!node) return node.status();
  auto token = read_page_token(options.token_file, std::getenv("BRAID_PAGE_TOKEN"));
  if (!token) return token.status();
  return DaemonSource(
      PageAddress{node->host, node->port == 0 ? kUsualPagePort : node->port, std::move(*token)});
}

}  // namespace braid
