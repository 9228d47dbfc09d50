// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <spdlog/spdlog.h>

#include "base/status.h"

namespace braid {

// One line per event, to stderr; under systemd (JOURNAL_STREAM is set) without time and with a
// priority prefix, which the journal understands. Call once, from main. Levels: trace, debug, info,
// warn, error.
Status init_log(const std::string& level);
Status set_log_level(const std::string& level);
bool is_log_level(const std::string& level);

}  // namespace braid

// Used everywhere: BRAID_LOG_INFO("job '{}': …", name)
#define BRAID_LOG_DEBUG(...) ::spdlog::debug(__VA_ARGS__)
#define BRAID_LOG_INFO(...) ::spdlog::info(__VA_ARGS__)
#define BRAID_LOG_WARN(...) ::spdlog::warn(__VA_ARGS__)
#define BRAID_LOG_ERROR(...) ::spdlog::error(__VA_ARGS__)
