// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "loop/loop_questions.h"
#include "metrics/families.h"
#include "metrics/status.h"
#include "net/transport.h"
#include "web/shared_answers.h"
#include "web/web_server.h"

namespace braid {

enum class DaemonPhase : uint8_t { Starting, Serving, Stopping };

// What the control loop knows for the page: the rest of the status is added by another thread.
struct LoopStatus {
  DaemonStatus status;  // without flows, counters and processor time
  std::vector<FlowStatus> flows;
};

// What the page shows of one job: JSON, an array of all jobs of the name that the user may see.
struct PageJobQuestion {
  using Told = std::function<void(Result<std::string>)>;

  static constexpr uint32_t kStepsUsual = 3, kStepsMax = 20;
  static constexpr uint32_t kTimeoutMs = 3000;

  // Who asks for what.
  struct Asked {
    std::string job;
    uid_t user = 0;
    uint32_t steps = kStepsUsual;  // ?steps=N
  };

  std::string_view path;  // "/api/jobs/NAME/…"
  // Called on the control loop; calls back once, there. NotFound: there is nothing to say.
  std::function<void(const Asked& asked, Told told)> ask;
  uint32_t timeout_ms = kTimeoutMs;
};

struct DaemonPageSources {
  // Called on the control loop; calls back once, there.
  std::function<void(uid_t user, std::function<void(LoopStatus)> told)> status;
  std::vector<PageJobQuestion> jobs;
  // Called by any thread.
  std::function<std::string(LoopStatus)> status_json;
  std::vector<MetricsSource> metrics;
};

struct DaemonPageOptions {
  std::string address;
  uint16_t port = 0;
  PageAccessOptions access;
};

// The daemon's HTTP port: /metrics, /healthz, /readyz, and the page with its data. Whatever threads
// of the server need of the control loop they ask through LoopQuestions. Made and destroyed on the
// control loop; `sources` must outlive it.
class DaemonPage {
 public:
  static constexpr uint32_t kHealthTimeoutMs = 1000;
  static constexpr uint32_t kStatusTimeoutMs = 3000;
  static constexpr uint32_t kHealthFreshMs = 200;
  static constexpr uint32_t kDataFreshMs = 1000;

  static Result<std::unique_ptr<DaemonPage>> create(Loop& loop, const Clock& clock,
                                                    DaemonPageOptions options,
                                                    DaemonPageSources sources);
  DaemonPage(const DaemonPage&) = delete;
  DaemonPage& operator=(const DaemonPage&) = delete;
  ~DaemonPage();

  // Other rules about who may read the page, for requests to come.
  void set_access(PageAccessOptions access);
  void set_phase(DaemonPhase phase) { phase_ = phase; }
  uint16_t port() const { return server_->port(); }

 private:
  DaemonPage(Loop& loop, const Clock& clock, DaemonPageSources sources);
  std::vector<WebRoute> routes();
  void add_page_routes(std::vector<WebRoute>& routes);
  WebReply health();
  WebReply readiness();
  WebReply status(uid_t user);
  WebReply answer_about(const PageJobQuestion& question, const WebRequest& request);
  WebReply ask_about(const PageJobQuestion& question, const PageJobQuestion::Asked& asked);

  const DaemonPageSources sources_;
  LoopQuestions questions_;
  SharedAnswers health_answers_;
  SharedAnswers data_answers_;
  std::atomic<DaemonPhase> phase_{DaemonPhase::Starting};
  std::unique_ptr<WebServer> server_;  // its threads use all of the above
};

}  // namespace braid
