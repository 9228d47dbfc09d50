// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <set>
#include <thread>

#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory_limit.h"
#include "base/version.h"
#include "config/cluster_key.h"
#include "config/load.h"
#include "config/network.h"
#include "config/rails.h"
#include "config/reload.h"
#include "job/local_host.h"

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

uint32_t chunk_bytes_max(const DaemonConfig& config) {
  return std::max(config.transport.chunk_bytes, kTunedChunkBytesMax);
}

// systemd gives services a directory of theirs; there can be several, and one is enough.
std::string state_directory(const DaemonConfig& config) {
  if (config.tune.state_directory != kAuto) return config.tune.state_directory;
  const char* given = std::getenv("STATE_DIRECTORY");
  const std::string directories = given == nullptr ? "" : given;
  return directories.substr(0, directories.find(':'));
}

TransferSettings transfer_settings(const DaemonConfig& config) {
  TransferSettings settings;
  settings.unit_bytes = config.collective.unit_bytes;
  settings.chunk_bytes = config.transport.chunk_bytes;
  settings.direct_bytes = config.collective.direct_bytes;
  settings.halving_bytes = config.collective.halving_bytes;
  settings.is_hierarchical = config.collective.hierarchical == kOn;
  settings.streams = config.collective.streams;
  settings.flows = flows_per_link(config);
  settings.window_bytes = config.transport.window_bytes;
  return settings;
}

TuningOptions tuning_options(const DaemonConfig& config, size_t rails, KnowledgeStore& knowledge,
                             TuningCounters& counters) {
  TuningOptions tuning;
  tuning.is_on = config.tune.mode == kOn;
  tuning.defaults = transfer_settings(config);
  tuning.usual = transfer_settings({});
  tuning.flows_max = kTunedFlowsMax;
  tuning.chunk_bytes_max = chunk_bytes_max(config);
  tuning.pinned = config.tune.pin;
  // The order in which an element's sum is made follows from these; who keeps the first plan wants
  // the same bits in every run.
  if (config.plan.planner == kFirstPlan) {
    for (const char* name : {"unit_bytes", "direct_bytes", "halving_bytes", "hierarchical"})
      tuning.pinned.emplace_back(name);
  }
  tuning.steps = config.tune.steps;
  tuning.rails = static_cast<uint32_t>(rails);
  tuning.cores = cores();
  tuning.knowledge = &knowledge;
  tuning.counters = &counters;
  return tuning;
}

// The rest of the memory is for flows, other programs, and the trainers' own.
UserLimits user_limits(const DaemonConfig& config) {
  const uint64_t memory = memory_limit();
  const auto share_unless_given = [memory](uint64_t given, uint64_t quarters) {
    if (given != 0) return given;
    return memory == UINT64_MAX ? memory : memory / 4 * quarters;
  };
  UserLimits limits;
  limits[UserResource::Connections] = config.client.user_connections_max;
  limits[UserResource::Jobs] = config.client.user_jobs_max;
  limits[UserResource::ArenaBytes] = config.client.user_arena_bytes_max;
  limits[UserResource::ResultBytes] = share_unless_given(config.client.user_result_bytes_max, 2);
  limits[UserResource::Tensors] = config.client.user_tensors_max;
  limits[UserResource::ReplyBytes] = config.client.user_reply_bytes_max;
  limits.result_bytes_of_all = share_unless_given(config.collective.result_memory_max, 3);
  return limits;
}

// The part of what the process may have open that is for one purpose.
size_t share_of_descriptors(rlim_t divisor, rlim_t min, rlim_t max) {
  rlimit files{};
  return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? std::clamp(files.rlim_cur / divisor, min, max)
                                                 : min;
}

// All nodes of a job may connect to its coordinator at the same moment, and each takes a
// descriptor.
size_t strangers_max() { return share_of_descriptors(8, 64, 4096); }

size_t descriptors_closing_max() {
  return share_of_descriptors(4, 2 * DescriptorCloser::kWaitingPerOwnerMax,
                              2 * DescriptorCloser::kWaitingMax);
}

}  // namespace

Daemon::Daemon(DaemonInvocation invocation, DaemonConfig config, std::unique_ptr<Loop> loop)
    : invocation_(std::move(invocation)),
      config_(std::move(config)),
      started_ns_(clock_.now_ns()),
      loop_(std::move(loop)),
      worker_(std::make_unique<WorkThread>(*loop_, "work")),
      planner_(std::make_unique<WorkThread>(*loop_, "plan")) {}

Result<std::unique_ptr<Daemon>> Daemon::create(DaemonInvocation invocation, DaemonConfig config) {
  auto loop = Loop::create("control");
  if (!loop) return loop.status();
  std::unique_ptr<Daemon> daemon(
      new Daemon(std::move(invocation), std::move(config), std::move(loop).value()));
  if (Status started = daemon->start(); !started) {
    daemon->stop();
    daemon->loop_->run();
    return started;
  }
  return daemon;
}

Daemon::~Daemon() {
  // The transport was closed by stop(); what is left goes in the reverse of the order in which it
  // was made.
  before_sleep_.reset();
  watchdog_.reset();
  signals_.clear();
  metrics_.reset();
  if (engines_ != nullptr) engines_->stop_threads();
  jobs_.reset();  // what is still open tells its trainers, through the server's connections
  client_server_.reset();
  transport_.reset();
  control_plane_.reset();
  engines_.reset();
}

Status Daemon::start() {
  auto name = resolve_node_name(config_);
  if (!name) return name.status();
  node_name_ = *name;
  auto network = list_network();
  if (!network) return network.status();
  auto rails = resolve_rails(config_, *network);
  if (!rails) return rails.status();
  rails_ = *rails;
  auto address = resolve_address(config_, rails_.front(), *network);
  if (!address) return address.status();
  node_address_ = *address;

  JobManagerOptions options;
  options.control_port = config_.control.port;
  options.listens_on_loopback = is_loopback_host(node_address_);
  options.jobs_max = config_.client.jobs_max;
  options.session = {config_.client.arena_bytes_max, config_.collective.operation_timeout_ms,
                     config_.client.job_weight_max};
  quotas_ = std::make_shared<UserQuotas>(user_limits(config_), std::set<uid_t>{0, ::geteuid()});
  options.session.quotas = quotas_;
  options.leave_timeout_ms = config_.collective.leave_timeout_ms;
  options.cut = {config_.collective.unit_bytes, config_.transport.chunk_bytes, io_threads(config_)};
  options.rack = config_.node.rack;
  if (config_.collective.direct_bytes > config_.transport.chunk_bytes) {
    BRAID_LOG_WARN(
        "collective.direct_bytes is {}, and {} is used: transport.chunk_bytes is that much, and a "
        "direct all-reduce travels in one chunk",
        config_.collective.direct_bytes, config_.transport.chunk_bytes);
  }
  options.algorithms = {
      std::min<uint64_t>(config_.collective.direct_bytes, config_.transport.chunk_bytes),
      config_.collective.halving_bytes, config_.collective.hierarchical == kOn,
      config_.collective.two_hops_bytes};
  options.idle_link_ms = uint64_t{config_.transport.idle_link_seconds} * 1000;
  options.planning.streams = config_.collective.streams;
  options.planning.min_gain = config_.plan.min_gain;
  options.planning.worker = planner_.get();
  if (config_.plan.planner != kFirstPlan)
    options.planning.planner = *find_planner(config_.plan.planner);  // load_config has checked it
  knowledge_ = std::make_unique<KnowledgeStore>(state_directory(config_));
  options.planning.tuning = tuning_options(config_, rails_.size(), *knowledge_, tuning_counters_);
  jobs_ = std::make_unique<JobManager>(*loop_, clock_, options);
  BRAID_RETURN_IF_ERROR(start_control_plane());
  BRAID_RETURN_IF_ERROR(start_transport());
  jobs_->set_services({*loop_, clock_, *control_plane_, *transport_, *engines_, job_counters_,
                       *worker_, config_.collective.result_bytes_max, chunk_bytes_max(config_),
                       quotas_});
  BRAID_RETURN_IF_ERROR(start_client_server());
  BRAID_RETURN_IF_ERROR(start_metrics());

  signals_.push_back(std::make_unique<Signal>(*loop_, SIGTERM, [this] { stop(); }));
  signals_.push_back(std::make_unique<Signal>(*loop_, SIGINT, [this] { stop(); }));
  signals_.push_back(std::make_unique<Signal>(*loop_, SIGHUP, [this] { reload(); }));
  uint64_t watchdog_us = 0;
  if (::sd_watchdog_enabled(0, &watchdog_us) > 0) {
    watchdog_ = std::make_unique<Timer>(*loop_);
    watchdog_->start_repeating(std::max<uint64_t>(1, watchdog_us / 2000),
                               [] { ::sd_notify(0, "WATCHDOG=1"); });
  }
  return Status::ok();
}

Status Daemon::start_control_plane() {
  auto key = load_cluster_key(config_.control.cluster_key_file);
  if (!key) return key.status();
  ControlPlaneOptions options;
  options.self = {0, node_name_, node_address_, 0};
  options.listen_address = resolve_listen(config_, node_address_);
  options.listen_port = config_.control.port;
  options.cluster_key = std::move(key).value();
  options.heartbeat_interval_ms = config_.control.heartbeat_interval_ms;
  options.peer_timeout_ms = config_.control.peer_timeout_ms;
  options.connect_timeout_ms = config_.control.connect_timeout_ms;
  options.strangers_max = strangers_max();
  if (options.cluster_key.empty()) {
    BRAID_LOG_INFO(
        "no control.cluster_key_file: this node works alone, or with daemons on its loopback "
        "addresses");
  }
  auto control_plane = ControlPlane::create(*loop_, clock_, std::move(options), *jobs_);
  if (!control_plane) return control_plane.status();
  control_plane_ = std::move(control_plane).value();
  return Status::ok();
}

Status Daemon::start_transport() {
  EngineOptions engine;
  engine.io_loops = io_threads(config_);
  engine.unit_bytes = config_.collective.unit_bytes;
  engine.chunk_bytes = config_.transport.chunk_bytes;
  engine.streams = config_.collective.streams;
  auto engines = EnginePool::create(
      *loop_, engine,
      {[this](const OperationKey& key) { jobs_->on_operation_done(key); },
       [this](const OperationKey& key) { jobs_->on_operation_retired(key); },
       [this](uint64_t job_key, NodeId from) { jobs_->on_overrun(job_key, from); }});
  if (!engines) return engines.status();
  engines_ = std::move(engines).value();
  loops_ = {loop_.get()};
  for (const IoLoop& io : engines_->io_loops()) loops_.push_back(io.loop);

  TransportOptions options;
  options.rails = rails_;
  options.transports = config_.transport.transports;
  options.flows_per_link = flows_per_link(config_);
  options.chunk_bytes = chunk_bytes_max(config_);
  options.window_bytes = config_.transport.window_bytes;
  options.slow_flow_percent = config_.transport.slow_flow_percent;
  auto transport = Transport::create(*loop_, engines_->io_loops(), options, *control_plane_);
  if (!transport) return transport.status();
  transport_ = std::move(transport).value();
  transport_->set_link_lost_callback(
      [this](const Peer& peer, const Status& reason) { jobs_->on_link_lost(peer, reason); });
  engines_->set_transport(*transport_);
  engines_->run_threads();
  return Status::ok();
}

Status Daemon::start_client_server() {
  ClientServerOptions options;
  options.path = config_.client.socket;
  options.group = config_.client.group;
  options.mode = config_.client.mode;
  options.quotas = quotas_;
  options.descriptors_closing_max = descriptors_closing_max();
  options.node_name = node_name_;
  options.daemon_version = kBraidVersion;
  auto server = ClientServer::create(*loop_, std::move(options), *jobs_);
  if (!server) return server.status();
  client_server_ = std::move(server).value();
  status_queries_ = std::make_unique<StatusQueries>(
      [this](auto gathered) { transport_->query_flows(std::move(gathered)); },
      [this](uint64_t client, const std::vector<FlowStatus>& flows) {
        if (client_server_ == nullptr) return;
        if (ClientConnection* asker = client_server_->find(client)) answer_status(*asker, flows);
      });
  jobs_->set_status_query_handler(
      [this](ClientConnection& connection) { return status_queries_->add(connection.id()); });
  return Status::ok();
}

Status Daemon::start_metrics() {
  before_sleep_ = std::make_unique<Handle<uv_prepare_t>>();
  uv_prepare_init(loop_->uv(), before_sleep_->get());
  before_sleep_->set_initialised();
  before_sleep_->get()->data = this;
  uv_prepare_start(before_sleep_->get(), [](uv_prepare_t* prepare) {
    static_cast<Daemon*>(prepare->data)->publish_gauges();
  });
  if (config_.metrics.port == 0) return Status::ok();

  // "UCX 1.13.1, tcp on eth0, …" → "1.13.1"
  const std::string transport = transport_->description();
  const std::string ucx =
      transport.substr(transport.find(' ') + 1, transport.find(',') - transport.find(' ') - 1);
  const double started =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  auto server = MetricsServer::create(
      config_.metrics.address, config_.metrics.port, {[this, ucx, started] {
        auto samples = daemon_samples(gauges_, *transport_, *engines_, tuning_counters_, loops_);
        samples.push_back({Metric::BuildInfo, {kBraidVersion, ucx}, 1});
        samples.push_back({Metric::StartTime, {}, started});
        return samples;
      }});
  if (!server) return server.status();
  metrics_ = std::move(server).value();
  return Status::ok();
}

void Daemon::run() {
  // Where it listens, which may be less than the address that peers are told.
  BRAID_LOG_INFO("braidd {} on node '{}' is ready: {}; clients at {}, peers at {}:{}{}",
                 kBraidVersion, node_name_, transport_->description(), config_.client.socket,
                 resolve_listen(config_, node_address_), control_plane_->self().port,
                 metrics_ == nullptr ? std::string(", no metrics")
                                     : fmt::format(", metrics at {}:{}", config_.metrics.address,
                                                   config_.metrics.port));
  ::sd_notify(0, "READY=1");
  loop_->run();
}

void Daemon::stop() {
  if (is_stopping_) return;
  is_stopping_ = true;
  ::sd_notify(0, "STOPPING=1");
  if (client_server_ != nullptr) client_server_->stop_accepting();
  const auto close_transport = [this] {
    if (transport_ == nullptr) return loop_->stop();
    transport_->close([this] { loop_->stop(); });
  };
  if (client_server_ == nullptr) return close_transport();
  BRAID_LOG_INFO("braidd on node '{}' is stopping", node_name_);
  jobs_->drain(close_transport);
}

void Daemon::reload() {
  const LoadedConfig loaded = load_config(invocation_.config_file, invocation_.settings);
  if (!loaded.is_ok()) {
    BRAID_LOG_ERROR("SIGHUP: nothing was changed, the new configuration is wrong: {}",
                    loaded.error_text());
    return;
  }
  const auto changes = diff_config(config_, loaded.config);
  if (changes.empty()) BRAID_LOG_INFO("SIGHUP: the configuration has not changed");
  for (const ConfigChange& change : changes) {
    if (change.reloadable) {
      BRAID_LOG_INFO("SIGHUP: {}: {} → {}", change.key, change.before, change.after);
    } else {
      BRAID_LOG_WARN("SIGHUP: {}: {} → {} needs a restart; it stays as it was", change.key,
                     change.before, change.after);
    }
  }
  config_ = merge_reloadable(config_, loaded.config);
  (void)set_log_level(config_.log.level);  // load_config has checked it
  jobs_->set_operation_timeout_ms(config_.collective.operation_timeout_ms);
}

void Daemon::answer_status(ClientConnection& connection, const std::vector<FlowStatus>& flows) {
  flatbuffers::FlatBufferBuilder builder;
  const auto json = builder.CreateString(to_json(status(flows, connection.credentials().uid)));
  const auto body = proto::CreateStatusReply(builder, json);
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBody::StatusReply, body.Union()));
  connection.send(builder);
}

DaemonStatus Daemon::status(const std::vector<FlowStatus>& flows, uid_t asker) const {
  DaemonStatus status;
  status.version = kBraidVersion;
  status.node = {node_name_, fmt::format("{:016x}", control_plane_->self().id), node_address_};
  status.uptime_seconds = static_cast<double>(clock_.now_ns() - started_ns_) / 1e9;
  status.transport = transport_->description();
  status.rails = rails_;
  for (const RailStatus& rail : transport_->rails()) {
    if (!rail.is_up) status.rails_down.push_back(rail.name);
  }
  for (const FlowStatus& flow : flows) {
    status.flows.push_back({flow.peer, flow.outgoing ? "out" : "in", flow.io_loop, flow.flow,
                            flow.rail, flow.state, flow.bytes_sent, flow.bytes_received,
                            flow.failures, flow.error,
                            static_cast<double>(flow.round_trip_ns) * 1e-6});
  }
  status.jobs = jobs_->job_statuses(asker);
  status.jobs_hidden = jobs_->jobs_hidden_from(asker);
  for (const Peer& peer : control_plane_->peers())
    status.peers.push_back({peer.name, peer.address, peer.port});
  for (const MetricSample& sample :
       daemon_samples(gauges_, *transport_, *engines_, tuning_counters_, loops_)) {
    std::string name(metric_info(sample.metric).name);
    for (const std::string& label : sample.label_values) name += "." + label;
    status.counters[name] += static_cast<uint64_t>(sample.value);
  }
  return status;
}

void Daemon::publish_gauges() {
  const auto store = [](std::atomic<uint64_t>& gauge, uint64_t value) {
    gauge.store(value, std::memory_order_relaxed);
  };
  store(gauges_.jobs, jobs_->jobs());
  store(gauges_.operations_pending, jobs_->operations_pending());
  store(gauges_.control_peers, control_plane_->peer_count());
  const ControlPlaneCounters& control = control_plane_->counters();
  store(gauges_.control_messages_sent, control.messages_sent);
  store(gauges_.control_messages_received, control.messages_received);
  store(gauges_.control_reconnects, control.reconnects);
  store(gauges_.control_frames_rejected, control.frames_refused);
  store(gauges_.control_messages_rejected, jobs_->messages_refused());
  store(gauges_.rejected_peers, control.connections_refused);
  if (client_server_ != nullptr) {
    const ClientServerCounters clients = client_server_->counters();
    store(gauges_.client_connections, clients.connections_open);
    store(gauges_.descriptors_closing, clients.descriptors_closing);
    store(gauges_.rejected_clients, clients.connections_refused + clients.handshakes_timed_out +
                                        clients.version_mismatches + clients.protocol_errors);
  }
  store(gauges_.operation_bytes, job_counters_.operation_bytes);
  for (size_t i = 0; i < job_counters_.operations.size(); ++i)
    store(gauges_.operations[i], job_counters_.operations[i]);
  for (size_t i = 0; i < job_counters_.failures.size(); ++i)
    store(gauges_.job_failures[i], job_counters_.failures[i]);
}

}  // namespace braid
