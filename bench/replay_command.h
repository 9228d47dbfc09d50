// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/replay.h"

namespace CLI {
class App;
}

namespace braid::bench {

// `options` must outlive the parsing of `app`.
CLI::App* add_replay_command(CLI::App& app, ReplayOptions& options);

}  // namespace braid::bench
