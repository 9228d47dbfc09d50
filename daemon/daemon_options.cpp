// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_options.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include <sys/resource.h>

#include "base/local_host.h"
#include "base/log.h"
#include "base/memory_limit.h"
#include "base/socket_address.h"
#include "base/version.h"
#include "config/checks.h"
#include "config/rails.h"
#include "config/secret_file.h"
#include "net/ucx/ucx_version.h"

namespace braid {
namespace {

uint32_t cores() { return std::max(1u, std::thread::hardware_concurrency()); }

uint32_t io_threads(const DaemonConfig& config) {
  return config.transport.io_threads != 0 ? config.transport.io_threads : std::max(1u, cores() / 4);
}

uint32_t flows_per_link(const DaemonConfig& config) {
  return config.transport.flows_per_link != 0 ? config.transport.flows_per_link
                                              : std::clamp(4 * cores(), 4u, 16u);
}

// What a tuned job may come to send in one chunk; transports are set up for it. A flow has a buffer
// of that size for each direction.
constexpr uint32_t kTunedChunkBytesMax = 512 << 10;
constexpr uint32_t kTunedFlowsMax = 16;

// What a user may have of the daemon where the memory or the descriptors of the machine say
// nothing.
constexpr uint64_t kUserReplyBytesMax = 256ull << 20;  // of messages that the user does not read
constexpr uint64_t kUserNameBytesMax = 256ull << 20;   // 256 for each of the tensors there may be
// Submitted and not released: each of 256 jobs' ranks may have a step of 1024 tensors.
constexpr uint64_t kUserOperationsMax = 1 << 18;

TransferSettings transfer_settings(const DaemonConfig& config) {
  TransferSettings settings;
  settings.unit_bytes = config.collective.unit_bytes;
  settings.chunk_bytes = config.transport.chunk_bytes;
  settings.is_hierarchical = true;  // where nodes say which rack they are in
  settings.streams = config.collective.streams;
  settings.flows = flows_per_link(config);
  settings.window_bytes = config.transport.window_bytes;
  return settings;
}

// The part of what the process may have open that is for one purpose.
size_t share_of_descriptors(rlim_t divisor, rlim_t min, rlim_t max) {
  rlimit files{};
  return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? std::clamp(files.rlim_cur / divisor, min, max)
                                                 : min;
}

}  // namespace

GuardOptions guard_options(const DaemonConfig& config) {
  GuardOptions guard;
  guard.every_steps = config.debug.guard_every_steps;
  for (const std::string& text : config.guard.limits) {
    if (text == kNone) continue;
    const GuardLimitSetting limit = *parse_guard_limit(text);  // load_config has checked it
    double& value = limit.name == "residual" ? guard.residual_max
                    : limit.name == "cosine" ? guard.cosine_min
                                             : guard.saturation_max;
    value = limit.value;
  }
  return guard;
}

PollingMode polling_mode(const DaemonConfig& config) {
  return *parse_polling_mode(config.node.polling);  // load_config has checked it
}

bool is_encrypted(const DaemonConfig& config) { return config.transport.encryption == kOn; }

CodecKinds allowed_codecs(const std::vector<std::string>& names) {
  CodecKinds kinds;
  for (const std::string& name : names) {  // load_config has checked them
    if (name == kAll) return kinds.set();
    kinds.set(static_cast<size_t>(parse_codec_spec(name)->kind));
  }
  return kinds;
}

uint32_t chunk_bytes_max(const DaemonConfig& config) {
  return std::max(config.transport.chunk_bytes, kTunedChunkBytesMax);
}

uint64_t result_bytes_max(const DaemonConfig& config) {
  return config.debug.result_bytes_max != 0 ? config.debug.result_bytes_max
                                            : config.client.arena_bytes_max;
}

// systemd gives services a directory of theirs; there can be several, and one is enough.
std::string state_directory(const DaemonConfig& config) {
  if (config.node.state_directory != kAuto) return config.node.state_directory;
  const char* given = std::getenv("STATE_DIRECTORY");
  const std::string directories = given == nullptr ? "" : given;
  return directories.substr(0, directories.find(':'));
}

std::string timeline_directory(const DaemonConfig& config) {
  const std::string state = state_directory(config);
  return state.empty() ? state : state + "/timelines";
}

TuningOptions tuning_options(const DaemonConfig& config, size_t rails) {
  TuningOptions tuning;
  tuning.is_on = config.tune.mode != kOff;
  tuning.defaults = transfer_settings(config);
  tuning.usual = transfer_settings({});
  tuning.flows_max = kTunedFlowsMax;
  tuning.chunk_bytes_max = chunk_bytes_max(config);
  if (config.tune.mode != kPortfolio) tuning.searchers = {"grid"};
  tuning.pinned = config.debug.pin;
  // The order in which an element's sum is made follows from these; who keeps the first plan wants
  // the same bits in every run.
  if (config.plan.planner == kFirstPlan) {
    for (const char* name :
         {"unit_bytes", "direct_bytes", "two_hops_bytes", "halving_bytes", "hierarchical"})
      tuning.pinned.emplace_back(name);
  }
  tuning.steps = config.debug.tune_steps;
  tuning.rails = static_cast<uint32_t>(rails);
  tuning.cores = cores();
  return tuning;
}

LogOptions log_options(const DaemonConfig& config) {
  const auto name = resolve_node_name(config);
  return {config.log.level, parse_log_format(config.log.format).value_or(LogFormat::Auto),
          name ? *name : std::string()};
}

TellingOptions telling_options(const DaemonConfig& config, const GpuWatch* gpus) {
  TellingOptions options;
  options.gpus = gpus;
  options.explain_every_ms = uint64_t{config.debug.explain_seconds} * 1000;
  options.timeline_directory = timeline_directory(config);
  options.circumstances = {config.collective.streams, io_threads(config)};
  options.planner = config.plan.planner;
  return options;
}

JobManagerOptions job_manager_options(const DaemonConfig& config) {
  JobManagerOptions options;
  options.control_port = config.control.port.value_or(kUsualControlPort);
  options.jobs_max = config.debug.jobs_max;
  options.session = {config.client.arena_bytes_max, config.collective.operation_timeout_ms};
  options.session.polling = polling_mode(config);
  options.session.codecs = allowed_codecs(config.debug.codecs);
  options.leave_timeout_ms = config.debug.leave_timeout_ms;
  options.cut = {config.collective.unit_bytes, config.transport.chunk_bytes, io_threads(config)};
  options.rack = config.node.rack;
  options.progress_seconds = config.debug.progress_seconds;
  options.algorithms = {config.collective.direct_bytes, config.collective.halving_bytes,
                        /*is_hierarchical=*/true, config.collective.two_hops_bytes};
  if (options.algorithms.direct_bytes > config.transport.chunk_bytes) {
    BRAID_LOG_WARN(
        "collective.direct_bytes is {}, and {} is used: it can be transport.chunk_bytes at most",
        *options.algorithms.direct_bytes, config.transport.chunk_bytes);
    options.algorithms.direct_bytes = config.transport.chunk_bytes;
  }
  options.idle_link_ms = uint64_t{config.debug.idle_link_seconds} * 1000;
  options.planning.streams = config.collective.streams;
  options.planning.min_gain = config.debug.min_gain_percent / 100.0;
  options.planning.guard = guard_options(config);
  if (config.plan.planner != kFirstPlan)
    options.planning.planner = *find_planner(config.plan.planner);  // load_config has checked it
  return options;
}

EngineOptions engine_options(const DaemonConfig& config) {
  EngineOptions options;
  options.io_loops = io_threads(config);
  options.unit_bytes = config.collective.unit_bytes;
  options.chunk_bytes = config.transport.chunk_bytes;
  options.streams = config.collective.streams;
  return options;
}

TransportOptions transport_options(const DaemonConfig& config, std::vector<std::string> rails) {
  TransportOptions options;
  options.rails = std::move(rails);
  options.transports = config.transport.transports;
  options.tcp = config.transport.tcp == "ucx" ? TcpTransport::Ucx : TcpTransport::Native;
  options.encrypts = is_encrypted(config);
  options.tcp_port = static_cast<uint16_t>(config.transport.port);
  options.node_address = config.node.address;
  options.is_alone = config.control.cluster_key_file.empty();
  options.flows_per_link = flows_per_link(config);
  options.chunk_bytes = chunk_bytes_max(config);
  options.window_bytes = config.transport.window_bytes;
  options.slow_flow_percent = config.debug.slow_flow_percent;
  // More patience with a peer is more with the links to it; less would fail jobs for flows that
  // only have to be opened again.
  options.open_timeout_ms = std::max(options.open_timeout_ms, config.debug.connect_timeout_ms);
  options.lost_timeout_ms = std::max(options.lost_timeout_ms, config.control.peer_timeout_ms);
  return options;
}

PathChecks::Options path_check_options(const DaemonConfig& config,
                                       std::function<void()> link_opened) {
  PathChecks::Options options;
  options.link_opened = std::move(link_opened);
  options.self.version = kBraidVersion;
  options.self.unit_bytes = config.collective.unit_bytes;
  options.self.chunk_bytes = config.transport.chunk_bytes;
  options.self.io_loops = io_threads(config);
  options.self.flows_per_link = flows_per_link(config);
  options.window_bytes = config.transport.window_bytes;
  return options;
}

// The rest of the memory is for flows, other programs, and the trainers' own.
std::unique_ptr<GpuWatch> watch_gpus(const DaemonConfig& config, std::vector<std::string> rails) {
  if (config.gpu.watch_seconds == 0) return nullptr;
  GpuWatchOptions options;
  options.every_ms = config.gpu.watch_seconds * 1000;
  options.reader.rails = std::move(rails);
  return std::make_unique<GpuWatch>(std::move(options));
}

UserLimits user_limits(const DaemonConfig& config) {
  const uint64_t memory = memory_limit();
  const auto share_unless_given = [memory](uint64_t given, uint64_t quarters) {
    if (given != 0) return given;
    return memory == UINT64_MAX ? memory : memory / 4 * quarters;
  };
  UserLimits limits;
  limits[UserResource::Connections] = config.debug.user_connections_max;
  limits[UserResource::Jobs] = config.client.user_jobs_max;
  limits[UserResource::ArenaBytes] = config.client.user_arena_bytes_max;
  limits[UserResource::Tensors] = config.debug.user_tensors_max;
  limits[UserResource::ReplyBytes] = kUserReplyBytesMax;
  limits[UserResource::Queries] = config.debug.user_queries_max;
  limits[UserResource::NameBytes] = kUserNameBytesMax;
  // The last quarter is the daemon's own, for flows and peers.
  const uint64_t quarter = share_of_descriptors(4, 1, RLIM_INFINITY);
  limits.descriptors_of_all = 3 * std::min<uint64_t>(quarter, UINT64_MAX / 4);
  limits[UserResource::Descriptors] = quarter;
  limits[UserResource::Operations] = kUserOperationsMax;
  limits.shared_bytes = [] { return shared_memory_used(); };
  limits.memory_of_user = share_unless_given(config.client.user_result_bytes_max, 2);
  limits.memory_of_all = share_unless_given(config.collective.result_memory_max, 3);
  return limits;
}

Result<DaemonPageOptions> page_options(const DaemonConfig& config, const std::string& node_name) {
  DaemonPageOptions options;
  options.address = config.metrics.address;
  options.port = config.metrics.port.value_or(0);  // 0: any
  options.access.node_name = node_name;
  options.access.listen_address = config.metrics.address;
  options.access.mode = config.page.access == kOff ? PageMode::Off : PageMode::Loopback;
  if (config.page.access.starts_with('/')) {
    auto token = load_page_token(config.page.access);
    if (!token) return token.status();
    options.access.mode = PageMode::Token;
    options.access.token = std::move(token).value();
  }
  return options;
}

ClientServerOptions client_server_options(const DaemonConfig& config, const std::string& node_name,
                                          const Peer& self, bool is_personal) {
  ClientServerOptions options;
  options.path = config.client.socket;
  options.group = config.client.group;
  if (is_personal && options.group.empty()) options.mode = 0600;
  options.descriptors_closing_max = descriptors_closing_max();
  options.node_name = node_name;
  options.daemon_version = kBraidVersion;
  const std::string listens_at = resolve_listen(config, self.address);
  options.address = is_loopback_host(listens_at) ? listens_at : self.address;
  // Trainers pass on a port that other daemons cannot know.
  if (!config.control.port && !config.control.cluster_key_file.empty())
    options.address = host_and_port(options.address, self.port);
  options.node = self.id;
  return options;
}

std::vector<MetricSample> constant_samples(const DaemonConfig& config) {
  const double started =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::vector<MetricSample> samples = {
      {Metric::BuildInfo, {kBraidVersion, ucx_version()}, 1},
      {Metric::StartTime, {}, started},
      {Metric::JobsMax, {}, static_cast<double>(config.debug.jobs_max)},
      {Metric::DescriptorsClosingMax, {}, static_cast<double>(descriptors_closing_max())}};
  return samples;
}

// All nodes of a job may connect to its coordinator at the same moment, and each takes a
// descriptor.
size_t strangers_max() { return share_of_descriptors(8, 64, 4096); }

size_t descriptors_closing_max() {
  return share_of_descriptors(4, 2 * DescriptorCloser::kWaitingPerOwnerMax,
                              2 * DescriptorCloser::kWaitingMax);
}

}  // namespace braid
