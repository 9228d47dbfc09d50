// SPDX-License-Identifier: Apache-2.0
#include "metrics/metrics_server.h"

#include <atomic>
#include <map>
#include <thread>

#include <arpa/inet.h>
#include <poll.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "metrics/label_text.h"

namespace braid {
namespace {

// Each connection holds a thread until it is answered, or has taken too long to ask or to read: one
// scraper, a person with curl, and some that have stopped.
constexpr const char* kServerThreads = "8";
constexpr const char* kRequestTimeoutMs = "2000";

using Series = std::map<std::vector<std::string>, double>;

std::vector<std::string> label_texts(const std::vector<std::string>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const std::string& value : values) texts.push_back(label_text(value));
  return texts;
}

prometheus::ClientMetric make_metric(const MetricInfo& info, const std::vector<std::string>& values,
                                     double number) {
  prometheus::ClientMetric metric;
  for (size_t i = 0; i < values.size(); ++i) {
    metric.label.push_back({std::string(info.labels[i]), values[i]});
  }
  (info.is_counter ? metric.counter.value : metric.gauge.value) = number;
  return metric;
}

prometheus::MetricFamily make_family(const MetricInfo& info, const Series& series) {
  prometheus::MetricFamily family;
  family.name = info.name;
  family.help = info.help;
  family.type = info.is_counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  for (const auto& [values, number] : series) {
    family.metric.push_back(make_metric(info, values, number));
  }
  return family;
}

class SourcesCollectable final : public prometheus::Collectable {
 public:
  explicit SourcesCollectable(std::vector<MetricsSource> sources) : sources_(std::move(sources)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<Series> series(metric_infos().size());
    for (const MetricInfo& info : metric_infos()) {
      if (!info.is_counter) continue;
      Series& own = series[static_cast<size_t>(info.metric)];
      if (info.labels.empty()) own[{}] = 0;
      for (const std::string_view value : info.label_values) own[{std::string(value)}] = 0;
    }
    for (const MetricsSource& source : sources_) {
      for (const MetricSample& sample : source()) {
        BRAID_ASSERT(sample.label_values.size() == metric_info(sample.metric).labels.size(),
                     "a sample needs a value for each label of its metric");
        series[static_cast<size_t>(sample.metric)][label_texts(sample.label_values)] +=
            sample.value;
      }
    }
    std::vector<prometheus::MetricFamily> families;
    for (const MetricInfo& info : metric_infos()) {
      const Series& own = series[static_cast<size_t>(info.metric)];
      if (!own.empty()) families.push_back(make_family(info, own));
    }
    return families;
  }

 private:
  const std::vector<MetricsSource> sources_;
};

// While it lives, threads that are started take no signals: those are for the daemon's own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

constexpr int kWakeIntervalMs = 20;

// The HTTP server looks every two seconds whether it should end; a connection makes it look now.
// Returns when `ended`.
void wake_until(const std::atomic<bool>& ended, const std::string& address, uint16_t port) {
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &peer.sin_addr);
  while (!ended) {
    const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    // Whether it connects does not matter: the next one may, and without any the server ends by
    // itself, later.
    (void)::connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer));
    ::poll(nullptr, 0, kWakeIntervalMs);
  }
}

}  // namespace

struct MetricsServer::State {
  std::string address;
  std::shared_ptr<SourcesCollectable> collectable;
  std::unique_ptr<prometheus::Exposer>
      exposer;  // has only a weak pointer; its destructor joins the threads
};

MetricsServer::MetricsServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

MetricsServer::~MetricsServer() {
  std::atomic<bool> ended = false;
  const std::string address = state_->address;
  std::thread waker([&ended, &address, port = port()] { wake_until(ended, address, port); });
  state_.reset();
  ended = true;
  waker.join();
}

Result<std::unique_ptr<MetricsServer>> MetricsServer::create(const std::string& address,
                                                             uint16_t port,
                                                             std::vector<MetricsSource> sources) {
  auto state = std::make_unique<State>();
  state->address = address;
  state->collectable = std::make_shared<SourcesCollectable>(std::move(sources));
  const std::string bind_address = fmt::format("{}:{}", address, port);
  try {
    const SignalsBlocked blocked;
    state->exposer = std::make_unique<prometheus::Exposer>(
        std::vector<std::string>{"listening_ports", bind_address, "num_threads", kServerThreads,
                                 "request_timeout_ms", kRequestTimeoutMs});
    state->exposer->RegisterCollectable(state->collectable);
  } catch (const std::exception& error) {
    return make_status(StatusCode::Unavailable,
                       "metrics.port: cannot serve /metrics on {} ({}); use a free port and an "
                       "address of this host (metrics.address), or 0 for no metrics",
                       bind_address, error.what());
  }
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(state)));
}

uint16_t MetricsServer::port() const {
  return static_cast<uint16_t>(state_->exposer->GetListeningPorts().front());
}

}  // namespace braid
