// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_settings.h"

#include <algorithm>
#include <mutex>
#include <string_view>

#include <fmt/ranges.h>
#include <unistd.h>

#include "base/log.h"
#include "base/printable.h"

namespace braid {
namespace {

constexpr std::string_view kPrefix = "UCX_";
constexpr size_t kVariableBytesMax = 100;

struct UcxSetting {
  std::string variable;  // without UCX_
  std::string value;
  std::string short_key;  // of the TCP transport; empty: none
};

enum class TcpKey { OnlyTcpHasIt, OthersHaveItToo };

std::vector<UcxSetting> settings_of(const UcxContextOptions& options, const std::string& devices) {
  std::vector<UcxSetting> settings = {
      {"NET_DEVICES", devices, ""},
      {"TLS", fmt::format("{}", fmt::join(options.transports, ",")), ""},
      {"RNDV_THRESH", "inf", ""},
  };
  // From 1.16 on each worker weighs all protocols there are against each other, and asks the kernel
  // about the device each time: a flow takes three times as long to open, for the same protocol.
  if (options.is_tcp_alone()) settings.push_back({"PROTO_ENABLE", "n", ""});

  // UCX 1.13 knows a setting of the TCP transport here by `key` alone, 1.22 by TCP_<key>; the other
  // form is ignored. `key` alone would also reach another transport's setting of that name.
  const auto set_tcp = [&](const char* key, const std::string& value, TcpKey kind) {
    const bool is_short = kind == TcpKey::OnlyTcpHasIt || options.is_tcp_alone();
    settings.push_back({std::string("TCP_") + key, value, is_short ? key : ""});
  };
  const std::string segment = std::to_string(options.message_bytes);
  // A message that fits one segment leaves by one sendmsg from the user's memory and is handed over
  // in UCX's own buffer.
  set_tcp("TX_SEG_SIZE", segment, TcpKey::OnlyTcpHasIt);
  set_tcp("RX_SEG_SIZE", segment, TcpKey::OnlyTcpHasIt);
  // A blocking connect to a host that does not answer would stop the loop for minutes.
  set_tcp("CONN_NB", "y", TcpKey::OnlyTcpHasIt);
  // The rail is chosen already; UCX would look for the default route in /proc each time.
  set_tcp("PREFER_DEFAULT", "n", TcpKey::OnlyTcpHasIt);
  // The family of node.address.
  set_tcp("AF_PRIO", options.prefers_v6 ? "inet6,inet" : "inet,inet6", TcpKey::OnlyTcpHasIt);
  // A flow has one socket: it needs one buffer each way, not eight, and no huge page around them.
  // They come from malloc, for mmap() can hold up the loop (base/heap.h).
  set_tcp("TX_BUFS_GROW", "1", TcpKey::OthersHaveItToo);
  set_tcp("RX_BUFS_GROW", "1", TcpKey::OthersHaveItToo);
  set_tcp("ALLOC", "heap", TcpKey::OthersHaveItToo);
  return settings;
}

// UCX takes any key and any value here without complaint: what matters is verified afterwards.
void set(ucp_config_t* config, const std::string& key, const std::string& value) {
  const ucs_status_t error = ucp_config_modify(config, key.c_str(), value.c_str());
  if (error != UCS_OK) {
    BRAID_LOG_DEBUG("UCX does not take {}={}: {}", key, value, ucs_status_string(error));
  }
}

// "UCX_TLS=rc", for each variable that is one of braid's settings, or is none.
std::vector<std::string> variables(const UcxContextOptions& options, bool are_braids) {
  const auto settings = settings_of(options, options.rail);
  std::vector<std::string> found;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (!text.starts_with(kPrefix)) continue;
    const std::string_view name = text.substr(0, text.find('=')).substr(kPrefix.size());
    const bool is_braids = std::any_of(settings.begin(), settings.end(),
                                       [&](const UcxSetting& one) { return one.variable == name; });
    if (is_braids == are_braids) found.push_back(printable(text, kVariableBytesMax));
  }
  return found;
}

}  // namespace

void apply_ucx_settings(ucp_config_t* config, const UcxContextOptions& options,
                        const std::string& devices) {
  for (const UcxSetting& setting : settings_of(options, devices)) {
    set(config, setting.variable, setting.value);
    if (!setting.short_key.empty()) set(config, setting.short_key, setting.value);
  }
}

std::string ucx_environment(const UcxContextOptions& options) {
  const auto others = variables(options, false);
  // A value that cannot be read is an error also where braid sets another.
  auto all = variables(options, true);
  all.insert(all.end(), others.begin(), others.end());
  if (all.empty()) return "";
  return fmt::format(
      " (this may come from the environment, which has {}: take out what is not meant for braidd)",
      fmt::join(all, ", "));
}

void log_ucx_environment(const UcxContextOptions& options) {
  static std::once_flag once;
  std::call_once(once, [&] {
    const auto ignored = variables(options, true);
    if (!ignored.empty()) {
      BRAID_LOG_WARN(
          "ignored in the environment, because braid sets it itself (transport.rails, "
          "transport.transports and what fits them): {}",
          fmt::join(ignored, ", "));
    }
    const auto others = variables(options, false);
    if (!others.empty())
      BRAID_LOG_INFO("UCX follows the environment in {}", fmt::join(others, ", "));
  });
}

}  // namespace braid
