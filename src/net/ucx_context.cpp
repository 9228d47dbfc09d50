// SPDX-License-Identifier: Apache-2.0
#include "net/ucx_context.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <fmt/ranges.h>
#include <net/if.h>

#include "base/log.h"
#include "net/ucx_error.h"
#include "net/ucx_log.h"

namespace braid {
namespace {

bool is_set_in_environment(const std::string& key) {
  return std::getenv(("UCX_" + key).c_str()) != nullptr;
}

// braid's default, unless the environment says something. UCX takes any key and any value here
// without complaint: what matters is verified afterwards.
void set_default(ucp_config_t* config, const std::string& key, const std::string& value) {
  if (is_set_in_environment(key)) return;
  const ucs_status_t error = ucp_config_modify(config, key.c_str(), value.c_str());
  if (error != UCS_OK) {
    BRAID_LOG_DEBUG("UCX does not take {}={}: {}", key, value, ucs_status_string(error));
  }
}

bool is_tcp_alone(const UcxContextOptions& options) {
  return options.transports == std::vector<std::string>{"tcp"};
}

enum class TcpKey { OnlyTcpHasIt, OthersHaveItToo };

// A default of the TCP transport, UCX_TCP_<key>. UCX 1.13 knows it here by `key` alone, 1.22 by
// TCP_<key>; the other form is ignored. `key` alone would also reach another transport's setting of
// that name.
void set_tcp_default(ucp_config_t* config, const UcxContextOptions& options, const std::string& key,
                     const std::string& value, TcpKey kind) {
  if (is_set_in_environment("TCP_" + key)) return;
  set_default(config, "TCP_" + key, value);
  if (kind == TcpKey::OnlyTcpHasIt || is_tcp_alone(options)) set_default(config, key, value);
}

Result<ucp_context_h> init(const UcxContextOptions& options, const std::string& devices) {
  ucp_config_t* config = nullptr;
  if (const ucs_status_t error = ucp_config_read(nullptr, nullptr, &config); error != UCS_OK) {
    return status_from_ucx(error, "cannot read UCX's configuration (the UCX_… variables)");
  }
  const std::string segment = std::to_string(options.message_bytes);
  set_default(config, "NET_DEVICES", devices);
  set_default(config, "TLS", fmt::format("{}", fmt::join(options.transports, ",")));
  set_default(config, "RNDV_THRESH", "inf");
  // From 1.16 on each worker weighs all protocols there are against each other, and asks the kernel
  // about the device each time: a flow takes three times as long to open, for the same protocol.
  if (is_tcp_alone(options)) set_default(config, "PROTO_ENABLE", "n");

  const auto set_tcp = [&](const char* key, const std::string& value, TcpKey kind) {
    set_tcp_default(config, options, key, value, kind);
  };
  // A message that fits one segment leaves by one sendmsg from the user's memory and is handed over
  // in UCX's own buffer.
  set_tcp("TX_SEG_SIZE", segment, TcpKey::OnlyTcpHasIt);
  set_tcp("RX_SEG_SIZE", segment, TcpKey::OnlyTcpHasIt);
  // A blocking connect to a host that does not answer would stop the loop for minutes.
  set_tcp("CONN_NB", "y", TcpKey::OnlyTcpHasIt);
  // The rail is chosen already; UCX would look for the default route in /proc each time.
  set_tcp("PREFER_DEFAULT", "n", TcpKey::OnlyTcpHasIt);
  // A flow has one socket: it needs one buffer each way, not eight, and no huge page around them.
  // They come from malloc, for mmap() can hold up the loop (base/heap.h).
  set_tcp("TX_BUFS_GROW", "1", TcpKey::OthersHaveItToo);
  set_tcp("RX_BUFS_GROW", "1", TcpKey::OthersHaveItToo);
  set_tcp("ALLOC", "heap", TcpKey::OthersHaveItToo);

  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME |
                      UCP_PARAM_FIELD_REQUEST_SIZE;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.request_size = sizeof(uint64_t);  // UcxEndpoint's token
  params.mt_workers_shared = 1;
  params.estimated_num_eps = 1;
  params.name = "braid";
  ucp_context_h context = nullptr;
  const ucs_status_t error = ucp_init(&params, config, &context);
  ucp_config_release(config);
  if (error != UCS_OK) return status_from_ucx(error, "UCX cannot be set up");
  return context;
}

// What `context` uses: "tcp/eth0". UCX has no call that tells, but prints it: "resource 1 : md 0
// dev 1 flags -- tcp/eth0".
std::vector<std::string> resources_of(ucp_context_h context) {
  char* text = nullptr;
  size_t bytes = 0;
  std::FILE* file = ::open_memstream(&text, &bytes);
  if (file == nullptr) return {};
  ucp_context_print_info(context, file);
  std::fclose(file);
  std::istringstream lines(std::string(text, bytes));
  std::free(text);  // NOLINT: open_memstream allocates with malloc

  std::vector<std::string> resources;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("resource ") == std::string::npos || line.find('/') == std::string::npos)
      continue;
    line.resize(line.find_last_not_of(" \t\r") + 1);
    resources.push_back(line.substr(line.rfind(' ') + 1));
  }
  return resources;
}

std::vector<std::string> devices_of(ucp_context_h context) {
  std::vector<std::string> devices;
  for (const std::string& resource : resources_of(context)) {
    std::string device = resource.substr(resource.rfind('/') + 1);
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

Status unusable_rail(const UcxContextOptions& options, const Status& cause) {
  const std::string transports = fmt::format("{}", fmt::join(options.transports, ","));
  std::vector<std::string> usable;
  if (auto all = init(options, "all")) {
    usable = devices_of(*all);
    ucp_cleanup(*all);
  }
  if (usable.empty()) {
    return make_status(StatusCode::InvalidArgument,
                       "UCX {} finds no device at all for transports '{}': {}", ucx_version(),
                       transports, cause.message());
  }
  const bool exists = ::if_nametoindex(options.rail.c_str()) != 0;
  return make_status(
      StatusCode::InvalidArgument,
      "rail '{}' {}; rails that UCX {} can use with transports '{}': {}", options.rail,
      exists ? "cannot be used (is it up, and has it an address?)" : "does not exist",
      ucx_version(), transports, fmt::join(usable, ", "));
}

}  // namespace

Result<std::shared_ptr<UcxContext>> UcxContext::create(const UcxContextOptions& options) {
  route_ucx_log();
  auto handle = init(options, options.rail);
  if (!handle) return unusable_rail(options, handle.status());
  std::shared_ptr<UcxContext> context(new UcxContext(*handle, options.rail));
  const auto resources = resources_of(*handle);
  context->is_tcp_alone_ =
      !resources.empty() && std::all_of(resources.begin(), resources.end(),
                                        [](const auto& name) { return name.starts_with("tcp/"); });
  if (is_set_in_environment("NET_DEVICES")) {
    BRAID_LOG_WARN("UCX_NET_DEVICES={} in the environment wins over rail '{}'",
                   std::getenv("UCX_NET_DEVICES"), options.rail);
    return context;
  }
  // With another transport in the list UCX succeeds without the rail: never fall back in silence.
  const auto devices = devices_of(context->handle());
  if (!devices.empty() &&
      std::find(devices.begin(), devices.end(), options.rail) == devices.end()) {
    return unusable_rail(options, make_status(StatusCode::NotFound, "the rail is not among them"));
  }
  return context;
}

UcxContext::~UcxContext() { ucp_cleanup(handle_); }

std::string ucx_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace braid
