// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <chrono>
#include <csignal>
#include <set>

#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/local_host.h"
#include "base/log.h"
#include "base/socket_address.h"
#include "base/version.h"
#include "config/cluster_key.h"
#include "config/network.h"
#include "config/rails.h"
#include "daemon/daemon_options.h"

namespace braid {
namespace {

// Two looks at all nodes, which take up to 2.5 s each, and what lies between them.
constexpr uint32_t kExplanationTimeoutMs = 8000;

}  // namespace

Daemon::Daemon(DaemonInvocation invocation, DaemonConfig config, std::unique_ptr<Loop> loop)
    : invocation_(std::move(invocation)),
      config_(std::move(config)),
      started_ns_(clock_.now_ns()),
      loop_(std::move(loop)),
      held_lines_(*loop_),
      worker_(std::make_unique<WorkThread>(*loop_, "work")),
      planner_(std::make_unique<WorkThread>(*loop_, "plan")),
      service_status_(*loop_, clock_, [this] { return service_numbers(); }) {}

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
  // stop() has closed the transport; what is left goes in the reverse of the order of its making.
  before_sleep_.reset();
  watchdog_.reset();
  signals_.clear();
  page_.reset();
  if (engines_ != nullptr) engines_->stop_threads();
  telling_.reset();
  jobs_.reset();  // what is still open tells its trainers, through the server's connections
  client_server_.reset();
  path_checks_.reset();
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
  BRAID_LOG_INFO("{}", describe_choice(config_, rails_, node_address_, *network));

  quotas_ = std::make_shared<UserQuotas>(user_limits(config_), std::set<uid_t>{0, ::geteuid()});
  knowledge_ = std::make_unique<KnowledgeStore>(state_directory(config_), planner_.get());
  JobManagerOptions options = job_manager_options(config_);
  options.listens_on_loopback = is_loopback_host(node_address_);
  options.why_own_host_only = why_own_host_only(config_, node_address_);
  options.session.quotas = quotas_;
  options.planning.worker = planner_.get();
  options.planning.tuning = tuning_options(config_, rails_.size());
  options.planning.tuning.knowledge = knowledge_.get();
  options.planning.tuning.counters = &tuning_counters_;
  options.planning.guard.board = &guard_board_;
  jobs_ = std::make_unique<JobManager>(*loop_, clock_, options);
  BRAID_RETURN_IF_ERROR(start_control_plane());
  BRAID_RETURN_IF_ERROR(start_transport());
  jobs_->set_services({*loop_, clock_, *control_plane_, *transport_, *engines_, job_counters_,
                       job_board_, *worker_, result_bytes_max(config_), chunk_bytes_max(config_),
                       quotas_});
  BRAID_RETURN_IF_ERROR(start_client_server());
  gpus_ = watch_gpus(config_, rails_);
  start_telling();
  BRAID_RETURN_IF_ERROR(start_page());
  if (!invocation_.personal_folder.empty()) BRAID_RETURN_IF_ERROR(start_personal_life());

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
  options.listen_port = config_.control.port.value_or(0);  // 0: any
  options.cluster_key = std::move(key).value();
  options.encrypts = is_encrypted(config_);
  options.peer_timeout_ms = config_.control.peer_timeout_ms;
  options.connect_timeout_ms = config_.debug.connect_timeout_ms;
  options.strangers_max = strangers_max();
  if (options.cluster_key.empty()) {
    BRAID_LOG_INFO("no control.cluster_key_file: this node works alone");
  }
  auto control_plane = ControlPlane::create(*loop_, clock_, std::move(options), *jobs_);
  if (!control_plane) return control_plane.status();
  control_plane_ = std::move(control_plane).value();
  return Status::ok();
}

Status Daemon::start_transport() {
  auto engines = EnginePool::create(*loop_, engine_options(config_), config_.debug.timeline_events);
  if (!engines) return engines.status();
  engines_ = std::move(engines).value();
  loops_ = {loop_.get()};
  engines_->set_polling(polling_mode(config_));
  for (const IoLoop& io : engines_->io_loops()) {
    if (io.loop != loop_.get()) loops_.push_back(io.loop);
  }

  auto transport = Transport::create(*loop_, engines_->io_loops(),
                                     transport_options(config_, rails_), *control_plane_);
  if (!transport) return transport.status();
  transport_ = std::move(transport).value();
  transport_->set_link_lost_callback(
      [this](const Peer& peer, const Status& reason) { jobs_->on_link_lost(peer, reason); });
  engines_->set_transport(*transport_);
  path_checks_ = std::make_unique<PathChecks>(
      *loop_, engines_->io_loops(), *control_plane_, *transport_, *worker_,
      path_check_options(config_, [this] { jobs_->watch_idle_links(); }));
  engines_->run_threads();
  return Status::ok();
}

Status Daemon::start_client_server() {
  const bool is_personal = !invocation_.personal_folder.empty();
  ClientServerOptions options =
      client_server_options(config_, node_name_, control_plane_->self(), is_personal);
  options.quotas = quotas_;
  options.worker = planner_.get();
  auto server = ClientServer::create(*loop_, std::move(options), *jobs_);
  if (!server && is_personal)
    return name_first_daemon(server.status(), invocation_.personal_folder);
  if (!server) return server.status();
  client_server_ = std::move(server).value();
  return Status::ok();
}

void Daemon::start_telling() {
  TellingOptions options = telling_options(config_, gpus_.get());
  if (config_.metrics.port != 0 && config_.debug.explain_seconds != 0)
    options.findings = &findings_board_;
  const auto status_of = [this](uid_t viewer,
                                const std::function<void(ClientAnswers::StatusMaker)>& told) {
    transport_->query_flows([this, viewer, told](std::vector<FlowStatus> flows) {
      told([this, viewer, flows = std::move(flows)] {
        DaemonStatus status = loop_status(viewer);
        add_numbers(status, flows, sources());
        return to_json(status);
      });
    });
  };
  telling_ = std::make_unique<Telling>(
      *jobs_, *path_checks_, std::move(options),
      [this](uint64_t id) { return client_server_->find(id); }, status_of);
}

Status Daemon::start_page() {
  before_sleep_ = std::make_unique<Handle<uv_prepare_t>>();
  uv_prepare_init(loop_->uv(), before_sleep_->get());
  before_sleep_->set_initialised();
  before_sleep_->get()->data = this;
  uv_prepare_start(before_sleep_->get(), [](uv_prepare_t* prepare) {
    Daemon& daemon = *static_cast<Daemon*>(prepare->data);
    daemon.publish_gauges();
    daemon.service_status_.note();
  });
  if (config_.metrics.port == 0) return Status::ok();

  auto options = page_options(config_, node_name_);
  if (!options) return options.status();
  auto page = DaemonPage::create(*loop_, clock_, std::move(options).value(), page_sources());
  if (!page) return page.status();
  page_ = std::move(page).value();
  return Status::ok();
}

Status Daemon::start_personal_life() {
  PersonalNews news{::getpid(), node_name_, config_.client.socket, node_address_, {}, {}};
  if (!config_.control.cluster_key_file.empty()) news.control_port = control_plane_->self().port;
  if (page_ != nullptr) news.page_port = page_->port();
  PersonalLife::Options options;
  options.folder = invocation_.personal_folder;
  options.folder_above = invocation_.personal_folder_above;
  options.use = [this]() -> PersonalLife::Use {
    const ClientServerCounters clients = client_server_->counters();
    return {clients.connections_open + jobs_->jobs().size(), clients.messages_received};
  };
  options.end = [this] { stop(); };
  auto life = PersonalLife::create(*loop_, clock_, std::move(options), news);
  if (!life) return life.status();
  personal_ = std::move(life).value();
  return Status::ok();
}

DaemonPageSources Daemon::page_sources() {
  DaemonPageSources page;
  page.status = [this](uid_t user, std::function<void(LoopStatus)> told) {
    transport_->query_flows([this, user, told = std::move(told)](std::vector<FlowStatus> flows) {
      told({loop_status(user), std::move(flows)});
    });
  };
  using Asked = PageJobQuestion::Asked;
  using Told = PageJobQuestion::Told;
  JobQuestions& questions = telling_->questions();
  page.jobs = {{"/api/jobs/NAME/steps",
                [&questions](const Asked& asked, const Told& told) {
                  const Status is_asked = questions.gather(asked.job, asked.user, 0, told);
                  if (!is_asked) told(is_asked);
                }},
               {"/api/jobs/NAME/plan",
                [&questions](const Asked& asked, const Told& told) {
                  questions.plans(
                      asked.job, asked.user,
                      [told](Result<std::string> json, uint64_t) { told(std::move(json)); });
                }},
               {"/api/jobs/NAME/explain",
                [&questions](const Asked& asked, const Told& told) {
                  const Status is_asked = questions.explain(
                      asked.job, asked.user, [told](const Result<Explanation>& explanation) {
                        told(explanation ? Result<std::string>('[' + to_json(*explanation) + ']')
                                         : explanation.status());
                      });
                  if (!is_asked) told(is_asked);
                },
                kExplanationTimeoutMs},
               {"/api/jobs/NAME/timeline", [&questions](const Asked& asked, const Told& told) {
                  questions.timeline(asked.job, asked.user, asked.steps,
                                     [told](std::optional<std::string> json) {
                                       told('[' + std::move(json).value_or("") + ']');
                                     });
                }}};
  page.status_json = [this](LoopStatus loop_status) {
    add_numbers(loop_status.status, loop_status.flows, sources());
    return to_json(loop_status.status);
  };
  page.metrics = {[this] { return daemon_samples(sources()); },
                  [samples = constant_samples(config_)] { return samples; }};
  return page;
}

void Daemon::run() {
  // Where it listens, which may be less than the address that peers are told.
  BRAID_LOG_INFO("braidd {} on node '{}' is ready: {}; clients at {}, {}{}", kBraidVersion,
                 node_name_, transport_->description(), config_.client.socket,
                 config_.control.cluster_key_file.empty()
                     ? std::string("no peers")
                     : "peers at " + host_and_port(resolve_listen(config_, node_address_),
                                                   control_plane_->self().port),
                 page_ == nullptr
                     ? std::string(", no metrics")
                     : ", metrics at " + host_and_port(config_.metrics.address, page_->port()));
  if (page_ != nullptr) page_->set_phase(DaemonPhase::Serving);
  service_status_.tell_ready();
  loop_->run();
}

void Daemon::stop() {
  if (is_stopping_) return;
  is_stopping_ = true;
  service_status_.tell_stopping(JobManager::kDrainTimeoutMs);
  if (page_ != nullptr) page_->set_phase(DaemonPhase::Stopping);
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
  auto merged = reload_config(invocation_, config_);
  if (!merged) return;
  // The file may have another token now.
  auto page = page_options(*merged, node_name_);
  if (!page) return BRAID_LOG_ERROR("SIGHUP: nothing was changed: {}", page.status().message());
  if (merged->log.format != config_.log.format) set_log_format(log_options(*merged));
  config_ = std::move(*merged);
  if (page_ != nullptr) page_->set_access(std::move(page->access));
  (void)set_log_level(config_.log.level);  // load_config has checked it
  quotas_->set_limits(user_limits(config_));
  GuardOptions guard = guard_options(config_);
  guard.board = &guard_board_;
  jobs_->set_guard(guard);
  jobs_->set_arena_bytes_max(config_.client.arena_bytes_max, result_bytes_max(config_));
  jobs_->set_operation_timeout_ms(config_.collective.operation_timeout_ms);
  jobs_->set_progress_seconds(config_.debug.progress_seconds);
}

DaemonStatus Daemon::loop_status(uid_t asker) const {
  DaemonStatus status;
  status.version = kBraidVersion;
  status.node = {node_name_, fmt::format("{:016x}", control_plane_->self().id), node_address_};
  status.uptime_seconds = static_cast<double>(clock_.now_ns() - started_ns_) / 1e9;
  status.transport = transport_->description();
  status.rails = rails_;
  status.polling.mode = config_.node.polling;
  for (const Loop* loop : loops_)
    status.polling.seconds += static_cast<double>(loop->polling_counters().polled_ns) / 1e9;
  for (const RailStatus& rail : transport_->rails()) {
    if (!rail.is_up) status.rails_down.push_back(rail.name);
  }
  status.jobs = telling_->questions().statuses(asker);
  status.jobs_hidden = telling_->questions().hidden_from(asker);
  telling_->questions().add_gpus(status, asker);
  for (const Peer& peer : control_plane_->peers())
    status.peers.push_back({peer.name, peer.address, peer.port});
  return status;
}

ServiceStatus::Numbers Daemon::service_numbers() const {
  if (transport_ == nullptr || jobs_ == nullptr) return {};
  const TransportCounters wire = transport_->counters();
  return {jobs_->jobs().running(), jobs_->jobs_forming(), wire.flows_open, wire.flows_failed,
          wire.bytes_sent};
}

DaemonSources Daemon::sources() const {
  return {gauges_,         *transport_, *engines_, tuning_counters_, guard_board_, job_board_,
          findings_board_, gpus_.get(), loops_};
}

void Daemon::publish_gauges() {
  const auto store = [](std::atomic<uint64_t>& gauge, uint64_t value) {
    gauge.store(value, std::memory_order_relaxed);
  };
  store(gauges_.jobs, jobs_->jobs().size());
  store(gauges_.operations_pending, jobs_->jobs().operations_pending());
  store(gauges_.control_peers, control_plane_->peer_count());
  const ControlPlaneCounters& control = control_plane_->counters();
  store(gauges_.control_messages_sent, control.messages_sent);
  store(gauges_.control_messages_received, control.messages_received);
  store(gauges_.control_reconnects, control.reconnects);
  store(gauges_.control_frames_rejected, control.frames_refused);
  store(gauges_.control_messages_rejected,
        jobs_->messages_refused() + telling_->questions().messages_refused());
  store(gauges_.rejected_peers, control.connections_refused);
  if (client_server_ != nullptr) {
    const ClientServerCounters clients = client_server_->counters();
    store(gauges_.client_connections, clients.connections_open);
    store(gauges_.descriptors_closing, clients.descriptors_closing);
    store(gauges_.rejected_clients, clients.connections_refused + clients.handshakes_timed_out +
                                        clients.version_mismatches + clients.protocol_errors);
  }
  store(gauges_.operation_bytes, job_counters_.operation_bytes);
  store(gauges_.result_memory_bytes, quotas_->result_bytes());
  store(gauges_.result_memory_max, quotas_->memory_of_all());
  for (size_t i = 0; i < job_counters_.operations.size(); ++i)
    store(gauges_.operations[i], job_counters_.operations[i]);
  for (size_t i = 0; i < job_counters_.failures.size(); ++i)
    store(gauges_.job_failures[i], job_counters_.failures[i]);
}

}  // namespace braid
