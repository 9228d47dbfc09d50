// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_context.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include <fmt/ranges.h>
#include <net/if.h>

#include "base/log.h"
#include "net/tcp/tcp_rail.h"
#include "net/ucx/ucx_error.h"
#include "net/ucx/ucx_log.h"
#include "net/ucx/ucx_version.h"

namespace braid {
namespace {

Result<ucp_context_h> init(const UcxContextOptions& options, const std::string& devices) {
  ucp_config_t* config = nullptr;
  if (const ucs_status_t error = ucp_config_read(nullptr, nullptr, &config); error != UCS_OK) {
    return status_from_ucx(error, "cannot read UCX's configuration");
  }
  apply_ucx_settings(config, options, devices);

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

// What UCX could use here if transport.transports allowed all.
std::set<std::string> transports_of_all(UcxContextOptions options) {
  options.transports = {"all"};
  std::set<std::string> transports;
  if (auto all = init(options, "all")) {
    for (const std::string& resource : resources_of(*all))
      transports.insert(resource.substr(0, resource.find('/')));
    ucp_cleanup(*all);
  }
  return transports;
}

Status unusable_rail(const UcxContextOptions& options, const Status& cause) {
  const std::string transports = fmt::format("{}", fmt::join(options.transports, ","));
  std::vector<std::string> usable;
  if (auto all = init(options, "all")) {
    usable = devices_of(*all);
    ucp_cleanup(*all);
  }
  if (usable.empty()) {
    return make_status(
        StatusCode::InvalidArgument,
        "transport.transports: UCX {} finds no device on this machine for '{}' ({}); "
        "what it can use here: {}; use one of these, such as tcp, or look at "
        "ucx_info -d{}",
        ucx_version(), transports, cause.message(), fmt::join(transports_of_all(options), ", "),
        ucx_environment(options));
  }
  const bool exists = ::if_nametoindex(options.rail.c_str()) != 0;
  const auto rail = find_tcp_rail(options.rail, "");
  if (rail && std::ranges::all_of(rail->addresses, &SocketAddress::is_link_local)) {
    return make_status(
        StatusCode::InvalidArgument,
        "rail '{}' cannot be used: UCX knows no link-local IPv6 address, and it has "
        "{} alone; give it an IPv4 or a global IPv6 address, or set transport.tcp to "
        "native",
        options.rail, rail->addresses.front().host());
  }
  return make_status(
      StatusCode::InvalidArgument,
      "rail '{}' {}; rails that UCX {} can use with transports '{}': {}{}", options.rail,
      exists ? "cannot be used (is it up, and has it an address?)" : "does not exist",
      ucx_version(), transports, fmt::join(usable, ", "), ucx_environment(options));
}

}  // namespace

Result<std::shared_ptr<UcxContext>> UcxContext::create(const UcxContextOptions& options) {
  route_ucx_log();
  log_ucx_environment(options);
  auto handle = init(options, options.rail);
  if (!handle) return unusable_rail(options, handle.status());
  std::shared_ptr<UcxContext> context(new UcxContext(*handle, options));
  const auto resources = resources_of(*handle);
  context->is_tcp_alone_ =
      !resources.empty() && std::all_of(resources.begin(), resources.end(),
                                        [](const auto& name) { return name.starts_with("tcp/"); });
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
