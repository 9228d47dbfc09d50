// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_log.h"

#include <array>
#include <bit>
#include <cstdio>
#include <mutex>
#include <string_view>

#include <ucs/debug/log_def.h>

#include "base/hash.h"
#include "base/log.h"

namespace braid {
namespace {

constexpr size_t kKindsMax = 64;  // places in UCX's source; beyond that they share counters

// How often the place `file`:`line` has spoken, this time included.
uint64_t count_kind(const char* file, unsigned line) {
  static std::mutex mutex;
  static std::array<uint64_t, kKindsMax> counts{};
  const uint64_t kind = mix64(fnv1a64(file) + line) % kKindsMax;
  const std::lock_guard lock(mutex);
  return ++counts[kind];
}

LogLevel level_of(ucs_log_level_t level) {
  if (level <= UCS_LOG_LEVEL_ERROR) return LogLevel::Error;
  if (level == UCS_LOG_LEVEL_WARN) return LogLevel::Warn;
  // UCX's "info" is braid's "debug": what matters to an operator, braid says itself.
  return LogLevel::Debug;
}

ucs_log_func_rc_t on_ucx_line(const char* file, unsigned line, const char* /*function*/,
                              ucs_log_level_t level,
                              const ucs_log_component_config_t* /*component*/, const char* format,
                              va_list arguments) {
  if (level == UCS_LOG_LEVEL_FATAL) return UCS_LOG_FUNC_RC_CONTINUE;  // UCX aborts after it
  // Said of the keys that this version of UCX ignores, once per worker: see settings_of in
  // ucx_settings.cpp.
  const bool is_expected = std::string_view(format).starts_with("invalid configuration");
  const auto braid_level = is_expected ? LogLevel::Debug : level_of(level);
  if (!is_logged(braid_level)) return UCS_LOG_FUNC_RC_STOP;
  const uint64_t count = count_kind(file, line);
  if (braid_level > LogLevel::Debug && !std::has_single_bit(count)) {
    return UCS_LOG_FUNC_RC_STOP;
  }
  std::array<char, 1024> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  if (count > 1) {
    log_line(braid_level, "UCX: {} ({} times)", text.data(), count);
  } else {
    log_line(braid_level, "UCX: {}", text.data());
  }
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace

void route_ucx_log() {
  static std::once_flag once;
  std::call_once(once, [] { ucs_log_push_handler(on_ucx_line); });
}

}  // namespace braid
