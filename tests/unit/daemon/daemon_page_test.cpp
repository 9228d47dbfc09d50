// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_page.h"

#include <optional>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

#include "loop_testing.h"
#include "web_client.h"

namespace braid {
namespace {

using testing::body_of;
using testing::get;
using testing::status_of;

// An answer holds for ever.
class StandingClock final : public Clock {
 public:
  uint64_t now_ns() const override { return 1; }
};

class DaemonPageTest : public testing::LoopTest {
 protected:
  void serve(PageMode mode = PageMode::Loopback) { serve(mode, clock_); }
  void serve(PageMode mode, const Clock& clock) {
    DaemonPageSources sources;
    sources.status = [this](uid_t user, const std::function<void(LoopStatus)>& told) {
      ++statuses_;
      LoopStatus status;
      status.status.version = std::to_string(user);
      told(std::move(status));
    };
    sources.status_json = [](const LoopStatus& status) { return to_json(status.status); };
    sources.jobs = {{"/api/jobs/NAME/steps", [this](const PageJobQuestion::Asked& asked,
                                                    const PageJobQuestion::Told& told) {
                       asked_ = fmt::format("{} {}", asked.job, asked.steps);
                       if (asked.job == "whose")
                         return told(Result<std::string>(std::to_string(asked.user)));
                       if (asked.job == "over") return told(Result<std::string>("[]"));
                       if (asked.job == "many")
                         return told(Status(StatusCode::ResourceExhausted, "too many"));
                       told(Result<std::string>("[1]"));
                     }}};
    DaemonPageOptions options;
    options.address = options.access.listen_address = "127.0.0.1";
    options.access.mode = mode;
    auto page = DaemonPage::create(*loop_, clock, std::move(options), std::move(sources));
    ASSERT_TRUE(page.is_ok()) << page.status().message();
    page_ = std::move(page).value();
  }

  // While the loop runs.
  std::string ask(const std::string& path, uid_t user = ::geteuid()) {
    std::optional<std::string> answer;
    std::atomic<bool> is_there = false;
    std::thread asker([&] {
      ::syscall(SYS_setresuid, -1, user, -1);  // not seteuid(): of this thread alone
      answer = get(page_->port(), path);
      is_there = true;
    });
    run_until([&] { return is_there.load(); });
    asker.join();
    return *answer;
  }
  uint64_t user_of_status(uid_t asker) {
    const auto status = parse_status(body_of(ask("/api/status", asker)));
    EXPECT_TRUE(status.is_ok()) << status.status().message();
    return status ? std::stoull(status->version) : UINT64_MAX;
  }
  // While it does not.
  std::string ask_in_vain(const std::string& path) { return get(page_->port(), path); }

  SystemClock clock_;
  std::unique_ptr<DaemonPage> page_;
  std::atomic<int> statuses_{0};
  std::string asked_;
};

TEST_F(DaemonPageTest, IsWellAsLongAsTheLoopAnswers) {
  serve();
  EXPECT_EQ(body_of(ask("/healthz")), "ok\n");
}

TEST_F(DaemonPageTest, IsNotWellWhenTheLoopHangs) {
  serve();
  page_->set_phase(DaemonPhase::Serving);
  for (const char* path : {"/healthz", "/readyz"}) {
    const std::string answer = ask_in_vain(path);
    EXPECT_EQ(status_of(answer), 503) << path;
    EXPECT_EQ(body_of(answer), "the control loop has not answered within 1000 ms\n");
  }
  EXPECT_EQ(status_of(ask_in_vain("/metrics")), 200);
  const std::string status = ask_in_vain("/api/status");
  EXPECT_EQ(status_of(status), 503);
  EXPECT_EQ(body_of(status), "the control loop has not answered within 3000 ms\n");
}

TEST_F(DaemonPageTest, IsReadyWhileItServes) {
  serve();
  EXPECT_EQ(status_of(ask("/readyz")), 503);
  EXPECT_EQ(body_of(ask("/readyz")), "starting: takes no trainers yet\n");
  page_->set_phase(DaemonPhase::Serving);
  EXPECT_EQ(body_of(ask("/readyz")), "ready\n");
  page_->set_phase(DaemonPhase::Stopping);
  EXPECT_EQ(status_of(ask("/readyz")), 503);
  EXPECT_EQ(body_of(ask("/readyz")), "stopping: takes no new trainers\n");
  EXPECT_EQ(body_of(ask("/healthz")), "ok\n");
}

TEST_F(DaemonPageTest, TellsWhatTheAskerMaySee) {
  serve();
  const auto status = parse_status(body_of(ask("/api/status"))).value();
  EXPECT_EQ(status.version, std::to_string(::getuid()));
  EXPECT_EQ(body_of(ask("/api/jobs/a%2Fb/steps")), "[1]");
  EXPECT_EQ(asked_, "a/b 3");
  EXPECT_EQ(status_of(ask("/api/jobs/a%2Fb/steps?steps=100")), 200);
  EXPECT_EQ(asked_, "a/b 20");
  EXPECT_EQ(status_of(ask("/api/jobs/over/steps")), 404);
  const std::string refused = ask("/api/jobs/many/steps");
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_EQ(body_of(refused), "too many\n");
}

TEST_F(DaemonPageTest, NobodyGetsWhatWasMadeForAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const StandingClock clock;
  serve(PageMode::Loopback, clock);
  for (const uid_t user : {0U, 65534U, 1000U}) {
    EXPECT_EQ(user_of_status(user), user);
    EXPECT_EQ(body_of(ask("/api/jobs/whose/steps", user)), std::to_string(user));
  }
  EXPECT_EQ(user_of_status(0), 0U);
  EXPECT_EQ(statuses_, 3) << "what was made for a user is told again";
  page_.reset();
}

TEST_F(DaemonPageTest, ManyWhoLookCostNoMoreThanOne) {
  serve();
  std::atomic<int> answered = 0;
  std::vector<std::thread> askers;
  const uint64_t begun_ns = clock_.now_ns();
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&] {
      for (int times = 0; times < 50; ++times)
        EXPECT_EQ(status_of(get(page_->port(), "/api/status")), 200);
      ++answered;
    });
  }
  run_until([&] { return answered == 4; });
  for (std::thread& asker : askers) asker.join();
  const uint64_t took_ms = (clock_.now_ns() - begun_ns) / 1'000'000;
  EXPECT_LE(statuses_, static_cast<int>(took_ms / DaemonPage::kDataFreshMs) + 1);
}

TEST_F(DaemonPageTest, OffSaysWhereThingsAre) {
  serve(PageMode::Off);
  EXPECT_NE(body_of(ask("/")).find("the page is off (page.access: off)"), std::string::npos);
  for (const char* path : {"/page.js", "/api/status", "/api/jobs/a/steps"})
    EXPECT_EQ(status_of(ask(path)), 404) << path;
  EXPECT_EQ(status_of(ask("/metrics")), 200);
  EXPECT_EQ(body_of(ask("/healthz")), "ok\n");
}

TEST_F(DaemonPageTest, EndsWhileSomebodyWaits) {
  serve();
  std::thread asker([port = page_->port()] { get(port, "/api/status"); });
  run_rounds();
  page_.reset();
  asker.join();
}

}  // namespace
}  // namespace braid
