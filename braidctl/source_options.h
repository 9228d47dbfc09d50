// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "braidctl/command.h"
#include "braidctl/daemon_source.h"

namespace braid {

// Which daemon a command asks: options of braidctl itself, for all of its commands.
struct SourceOptions {
  std::string socket;  // empty: the usual one
  std::string host;    // "NODE" or "NODE:PORT"; empty: the socket is asked
  std::string token_file;
};
void add_source_options(CLI::App& app, SourceOptions& options);
// Reads the token, where a page is asked.
Result<DaemonSource> make_source(const SourceOptions& options);

}  // namespace braid
