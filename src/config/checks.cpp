// SPDX-License-Identifier: Apache-2.0
#include "config/checks.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/ranges.h>
#include <sys/un.h>

#include "base/local_host.h"
#include "base/log.h"
#include "base/polling.h"
#include "base/socket_address.h"
#include "codec/codec_spec.h"
#include "config/value.h"
#include "planner/planner.h"
#include "tune/transfer_space.h"

namespace braid {
namespace {

constexpr size_t kNameBytesMax = 255;
// sun_path without its terminating zero.
constexpr size_t kSocketPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;
// Chunks and units are cut at multiples of this, so that no element of any type is ever split.
constexpr uint64_t kCutBytes = 64;
constexpr double kResidualMax = 1e9;  // norms of the gradient

bool has_blank_or_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

Status invalid(std::string message) { return {StatusCode::InvalidArgument, std::move(message)}; }

// Absolute, of a file. Blanks at the end are no part of any sane path, but of a YAML text that was
// not closed.
bool is_file_path(const std::string& path) {
  return path.starts_with('/') && !path.ends_with('/') && trim(path) == path;
}

// Encryption that cannot be had is refused: nobody who asked for it may go on in clear.
void find_encryption_conflicts(const DaemonConfig& config, std::vector<ConfigConflict>& conflicts) {
  constexpr const char* kKey = "transport.encryption";
  if (config.transport.encryption != kOn) return;
  if (config.control.cluster_key_file.empty()) {
    conflicts.push_back({kKey, "control.cluster_key_file",
                         "on makes its keys from the cluster key, and there is none; set "
                         "control.cluster_key_file on all nodes"});
  }
  if (config.transport.transports != DaemonConfig::Transport{}.transports) {
    conflicts.push_back({kKey, "transport.transports",
                         fmt::format("on is for flows over TCP, and transport.transports is {}, "
                                     "which carry them in clear; use [tcp] there, or off",
                                     fmt::join(config.transport.transports, ","))});
  } else if (config.transport.tcp != DaemonConfig::Transport{}.tcp) {
    conflicts.push_back({kKey, "transport.tcp",
                         fmt::format("on is for flows of braid's own, and transport.tcp is {}, "
                                     "which carries them in clear; use native there, or off",
                                     config.transport.tcp)});
  }
}

}  // namespace

Status check_node_name(const std::string& name) {
  if (name.empty()) return invalid("is empty; give a name, or auto for the host name");
  if (name.size() > kNameBytesMax || has_blank_or_control(name)) {
    return invalid(fmt::format("'{}' is not a name; use 1 to {} characters without blanks", name,
                               kNameBytesMax));
  }
  return Status::ok();
}

Status check_rack(const std::string& rack) {
  if (rack.size() <= kNameBytesMax && !has_blank_or_control(rack)) return Status::ok();
  return invalid(fmt::format("'{}' is not a rack's name; use up to {} characters without blanks",
                             rack, kNameBytesMax));
}

Status check_polling(const std::string& mode) {
  if (parse_polling_mode(mode)) return Status::ok();
  return invalid(fmt::format("'{}' is none of off, adaptive, always", mode));
}

Status check_address(const std::string& address) {
  const std::string fault = address_fault(address);
  return fault.empty() ? Status::ok() : invalid(fmt::format("'{}' {}", address, fault));
}

Status check_address_or_auto(const std::string& address) {
  if (address == kAuto) return Status::ok();
  const Status is_address = check_address(address);
  return is_address ? Status::ok() : invalid(is_address.message() + ", or auto");
}

Status check_cluster_key_file(const std::string& path) {
  if (path.empty() || is_file_path(path)) return Status::ok();
  return invalid(
      fmt::format("'{}' is not an absolute path; use one such as /etc/braid/cluster.key", path));
}

Status check_page_access(const std::string& access) {
  if (access == kOff || access == kLoopbackAccess || is_file_path(access)) return Status::ok();
  return invalid(fmt::format(
      "'{}' is neither off nor loopback nor an absolute path, such as /etc/braid/page.token",
      access));
}

Status check_socket_path(const std::string& path) {
  if (!is_file_path(path)) {
    return invalid(fmt::format(
        "'{}' is not the absolute path of a socket; use one such as /run/braid/braidd.sock", path));
  }
  if (path.size() > kSocketPathBytesMax) {
    return invalid(fmt::format("is {} bytes long; a socket's path has {} at most", path.size(),
                               kSocketPathBytesMax));
  }
  return Status::ok();
}

Status check_group(const std::string& group) {
  if (group.empty()) return Status::ok();
  if (has_blank_or_control(group) || group.find(':') != std::string::npos) {
    return invalid(fmt::format("'{}' is not a group; use the name of one, such as braid", group));
  }
  return Status::ok();
}

Status check_rail(const std::string& rail) {
  if (rail.empty() || has_blank_or_control(rail)) {
    return invalid(fmt::format(
        "'{}' is not a network device; use names such as eth0 (ip link shows them), or auto",
        rail));
  }
  return Status::ok();
}

Status check_transport(const std::string& transport) {
  const bool fits =
      !transport.empty() &&
      transport.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  if (fits) return Status::ok();
  return invalid(fmt::format(
      "'{}' is not a UCX transport; use names such as tcp (ucx_info -d shows them)", transport));
}

Status check_tcp(const std::string& tcp) {
  if (tcp == "native" || tcp == "ucx") return Status::ok();
  return invalid(fmt::format("'{}' is neither native nor ucx", tcp));
}

Status check_encryption(const std::string& encryption) {
  if (encryption == kOn || encryption == kOff) return Status::ok();
  return invalid(fmt::format("'{}' is neither on nor off", encryption));
}

Status check_planner(const std::string& planner) {
  if (planner == kFirstPlan) return Status::ok();
  const auto found = find_planner(planner);
  return found ? Status::ok() : invalid(found.status().message() + "; or first");
}

Status check_tune_mode(const std::string& mode) {
  if (mode == kOn || mode == kPortfolio || mode == kOff) return Status::ok();
  return invalid(fmt::format("'{}' is none of on, portfolio, off", mode));
}

Result<GuardLimitSetting> parse_guard_limit(const std::string& text) {
  const size_t equals = text.find('=');
  GuardLimitSetting limit{text.substr(0, equals)};
  const bool is_share = limit.name == "cosine" || limit.name == "saturation";
  double max = 0;
  if (is_share) max = 1;
  if (limit.name == "residual") max = kResidualMax;
  const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), limit.value);
  const bool is_number = error == std::errc() && end == number.data() + number.size();
  if (max != 0 && is_number && limit.value > 0 && limit.value <= max) return limit;
  return invalid(fmt::format(
      "'{}' is no limit; use residual=X, cosine=X or saturation=X with a number above 0, and for "
      "the last two of at most 1; or none",
      text));
}

Status check_guard_limit(const std::string& limit) {
  return limit == kNone ? Status::ok() : parse_guard_limit(limit).status();
}

Status check_codec(const std::string& name) {
  const auto codec = parse_codec_spec(name);
  if (name == kAll || (codec && name == codec_name(codec->kind))) return Status::ok();
  return invalid(fmt::format("'{}' is the name of no codec; use {}, or all", name, codec_names()));
}

Status check_tune_pin(const std::string& parameter) {
  if (parameter == kNone || is_transfer_parameter(parameter)) return Status::ok();
  return invalid(fmt::format("'{}' is not tuned; use {}, or none", parameter,
                             fmt::join(transfer_parameters(), ", ")));
}

Status check_state_directory(const std::string& path) {
  if (path.empty() || path == kAuto || (path.starts_with('/') && trim(path) == path))
    return Status::ok();
  return invalid(fmt::format(
      "'{}' is not an absolute path; use one such as /var/lib/braid, auto, or nothing", path));
}

Status check_level(const std::string& level) {
  if (is_log_level(level)) return Status::ok();
  return invalid(fmt::format("'{}' is no log level; use trace, debug, info, warn or error", level));
}

Status check_log_format(const std::string& format) {
  if (parse_log_format(format)) return Status::ok();
  return invalid(fmt::format("'{}' is no log format; use auto, text or json", format));
}

std::vector<ConfigConflict> find_conflicts(const DaemonConfig& config) {
  std::vector<ConfigConflict> conflicts;
  const auto& control = config.control;
  const auto& transport = config.transport;
  const auto& collective = config.collective;

  if (control.cluster_key_file.empty() && control.listen != kAuto &&
      !is_loopback_host(control.listen)) {
    conflicts.push_back({"control.listen", "control.cluster_key_file",
                         fmt::format("{} is reachable by others, and there is no cluster key; set "
                                     "control.cluster_key_file, or listen on 127.0.0.1",
                                     control.listen)});
  }
  if (transport.chunk_bytes % kCutBytes != 0) {
    conflicts.push_back({"transport.chunk_bytes", "",
                         fmt::format("{} is not a multiple of {}; use {}", transport.chunk_bytes,
                                     kCutBytes, transport.chunk_bytes / kCutBytes * kCutBytes)});
  }
  if (collective.unit_bytes % kCutBytes != 0) {
    conflicts.push_back({"collective.unit_bytes", "",
                         fmt::format("{} is not a multiple of {}; use {}", collective.unit_bytes,
                                     kCutBytes, collective.unit_bytes / kCutBytes * kCutBytes)});
  }
  if (transport.window_bytes < transport.chunk_bytes) {
    conflicts.push_back(
        {"transport.window_bytes", "transport.chunk_bytes",
         fmt::format("{} has no room for one chunk of transport.chunk_bytes = {}; use that or more",
                     format_bytes(transport.window_bytes), format_bytes(transport.chunk_bytes))});
  }
  if (collective.unit_bytes < transport.chunk_bytes) {
    conflicts.push_back(
        {"collective.unit_bytes", "transport.chunk_bytes",
         fmt::format("{} is less than one chunk of transport.chunk_bytes = {}; use that or more",
                     format_bytes(collective.unit_bytes), format_bytes(transport.chunk_bytes))});
  }
  for (const auto& [key, list] :
       {std::pair{"guard.limits", &config.guard.limits}, {"debug.pin", &config.debug.pin}}) {
    if (list->size() > 1 && std::ranges::count(*list, kNone) != 0)
      conflicts.push_back({key, "", "has none among others; use none alone, or leave it out"});
  }
  std::set<std::string> limited;
  for (const std::string& limit : config.guard.limits) {
    const std::string name = limit.substr(0, limit.find('='));
    if (!limited.insert(name).second)
      conflicts.push_back({"guard.limits", "", fmt::format("has {} twice; use it once", name)});
  }
  find_encryption_conflicts(config, conflicts);
  const std::optional<uint16_t> page_port = config.metrics.port;
  if (page_port && *page_port != 0 && page_port == control.port) {
    conflicts.push_back(
        {"metrics.port", "control.port",
         fmt::format("{} is control.port too; use another port, or 0 for no metrics", *page_port)});
  }
  return conflicts;
}

}  // namespace braid
