// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "metrics/families.h"

namespace braid {

// Serves /metrics for Prometheus on threads of its own. Holds no numbers: at each scrape it asks
// its sources, which must outlive it. Create and destroy on one thread; once it is destroyed no
// source is asked any more.
class MetricsServer {
 public:
  // `port` 0: any (tests); the daemon does not create a server when metrics.port is 0.
  static Result<std::unique_ptr<MetricsServer>> create(const std::string& address, uint16_t port,
                                                       std::vector<MetricsSource> sources);
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  ~MetricsServer();

  uint16_t port() const;

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace braid
