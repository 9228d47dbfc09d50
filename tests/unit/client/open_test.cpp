// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "client_fixture.h"
#include "ipc/unix_listener.h"
#include "ipc/unix_socket.h"

namespace braid {
namespace {

class OpenTest : public ClientTest {};

TEST_F(OpenTest, OpensAndClosesAJob) {
  start_daemon();
  braid_job* job = open_job();
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(braid_rank(job), 0u);
  EXPECT_EQ(braid_world_size(job), 1u);
  EXPECT_EQ(braid_nodes(job), 0u);  // such a daemon does not say
  EXPECT_EQ(braid_close(job), BRAID_OK);
}

braid_job* start_job(const braid_job_options& options) {
  braid_job* job = nullptr;
  EXPECT_EQ(braid_open_start(&options, &job), BRAID_OK) << braid_error_message();
  return job;
}

TEST_F(OpenTest, SaysHowManyNodesAJobHas) {
  start_daemon({.nodes = 3});
  braid_job* job = start_job(job_options());
  EXPECT_EQ(braid_nodes(job), 0u);
  int done = 0;
  while (done == 0) ASSERT_EQ(braid_open_wait(job, 1, &done), BRAID_OK) << braid_error_message();
  EXPECT_EQ(braid_nodes(job), 3u);
  EXPECT_EQ(braid_close(job), BRAID_OK);
}

TEST_F(OpenTest, OpensAJobInPieces) {
  start_daemon();
  braid_job* job = start_job(job_options());
  int done = 0;
  while (done == 0) ASSERT_EQ(braid_open_wait(job, 1, &done), BRAID_OK) << braid_error_message();
  register_tensor(job, "tensor", 4);
  done = 0;
  EXPECT_EQ(braid_open_wait(job, 1, &done), BRAID_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(braid_close(job), BRAID_OK);
}

TEST_F(OpenTest, AJobThatIsNotOpenYetCanOnlyBeGivenUp) {
  start_daemon({.answers_open = false});
  braid_job* job = start_job(job_options());
  int done = 1;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(braid_open_wait(job, 1, &done), BRAID_OK) << braid_error_message();
    EXPECT_EQ(done, 0);
  }
  void* memory = nullptr;
  EXPECT_BRAID_ERROR(braid_allocate(job, 16, &memory), BRAID_ERROR_INVALID_ARGUMENT,
                     "is not open; call braid_open_wait");
  EXPECT_INVALID(braid_leave(job, nullptr), "is not open");
  EXPECT_EQ(braid_close(job), BRAID_OK);
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (daemon_->connections() != 0 && std::chrono::steady_clock::now() < until) ::usleep(1000);
  EXPECT_EQ(daemon_->connections(), 0u);
}

TEST_F(OpenTest, TheFirstErrorEndsAnAttemptInPieces) {
  start_daemon({.open_failure = "no place"});
  braid_job* job = start_job(job_options());
  int code = BRAID_OK, done = 0;
  while (code == BRAID_OK) code = braid_open_wait(job, 1000, &done);
  for (int i = 0; i < 2; ++i)
    EXPECT_BRAID_ERROR(braid_open_wait(job, 1, &done), BRAID_ERROR_MISMATCH, "no place");
  EXPECT_EQ(done, 0);
  EXPECT_EQ(braid_close(job), BRAID_OK);
}

TEST_F(OpenTest, InPiecesItHasTheSameDeadline) {
  start_daemon({.answers_open = false});
  auto given = job_options();
  given.timeout_ms = 1;
  braid_job* job = start_job(given);
  int code = BRAID_OK, done = 0;
  while (code == BRAID_OK) code = braid_open_wait(job, 100, &done);
  EXPECT_EQ(code, BRAID_ERROR_DEADLINE_EXCEEDED) << braid_error_message();
  EXPECT_EQ(braid_close(job), BRAID_OK);
}

TEST_F(OpenTest, WithoutSocketNamesPathAndVariable) {
  const auto options = job_options();
  braid_job* job = nullptr;
  EXPECT_BRAID_ERROR(braid_open(&options, &job), BRAID_ERROR_UNAVAILABLE, path_);
  EXPECT_TRUE(message_has("BRAID_SOCKET"));
  EXPECT_TRUE(message_has("start"));
  EXPECT_EQ(job, nullptr);
}

TEST_F(OpenTest, SocketOfADeadDaemonSaysThatNobodyListens) {
  bound_socket(path_).reset();
  const auto options = job_options();
  braid_job* job = nullptr;
  EXPECT_BRAID_ERROR(braid_open(&options, &job), BRAID_ERROR_UNAVAILABLE, "nobody listens");
}

TEST_F(OpenTest, SocketPathComesFromTheEnvironment) {
  start_daemon();
  ::setenv("BRAID_SOCKET", path_.c_str(), 1);
  auto options = job_options();
  options.socket_path = nullptr;
  braid_job* job = open_job(options);
  ::unsetenv("BRAID_SOCKET");
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(braid_close(job), BRAID_OK);
}

TEST_F(OpenTest, TheWeightComesFromTheEnvironment) {
  start_daemon();
  for (const auto& [given, weight] : {std::pair("", 1u), {"1", 1u}, {"42", 42u}, {"100", 100u}}) {
    ::setenv("BRAID_JOB_WEIGHT", given, 1);
    braid_job* job = open_job();
    EXPECT_EQ(daemon_->seen().weight, weight) << given;
    EXPECT_EQ(braid_close(job), BRAID_OK);
  }
  ::unsetenv("BRAID_JOB_WEIGHT");
  EXPECT_EQ(braid_close(open_job()), BRAID_OK);
  EXPECT_EQ(daemon_->seen().weight, 1u);
}

TEST_F(OpenTest, TheDaemonSaysWhereOtherNodesReachIt) {
  start_daemon();
  char address[256];
  uint64_t node = 0;
  ASSERT_EQ(braid_master(path_.c_str(), 0, address, sizeof(address), &node), BRAID_OK);
  EXPECT_STREQ(address, "10.0.0.1");
  EXPECT_EQ(node, TestDaemon::kNode);
  EXPECT_INVALID(braid_master(path_.c_str(), 0, address, 8, &node), "the answer takes 9");
}

TEST_F(OpenTest, ADaemonThatDoesNotSayWhereItIsReachedIsTooOld) {
  start_daemon({.address = ""});
  char address[256];
  uint64_t node = 0;
  EXPECT_BRAID_ERROR(braid_master(path_.c_str(), 0, address, sizeof(address), &node),
                     BRAID_ERROR_NOT_FOUND, "too old");
}

TEST_F(OpenTest, TheMastersNumberGoesToTheDaemon) {
  start_daemon();
  auto options = job_options();
  options.master_node = 99;
  EXPECT_EQ(braid_close(open_job(options)), BRAID_OK);
  EXPECT_EQ(daemon_->seen().master_node, 99u);
}

TEST_F(OpenTest, TheTokenComesFromTheOptionsElseFromTheEnvironment) {
  start_daemon();
  const auto token_with = [&](const char* given) {
    auto options = job_options();
    options.token = given;
    EXPECT_EQ(braid_close(open_job(options)), BRAID_OK);
    return daemon_->seen().token;
  };
  EXPECT_EQ(token_with(nullptr), "");
  EXPECT_EQ(token_with("secret"), "secret");
  ::setenv("BRAID_JOB_TOKEN", "from outside", 1);
  EXPECT_EQ(token_with(nullptr), "from outside");
  EXPECT_EQ(token_with(""), "from outside");
  EXPECT_EQ(token_with("secret"), "secret");
  const std::string longest(255, 'x');
  EXPECT_EQ(token_with(longest.c_str()), longest);
  ::unsetenv("BRAID_JOB_TOKEN");
}

TEST_F(OpenTest, ATokenThatIsTooLongIsRefusedAndNotShown) {
  start_daemon();
  const std::string token(256, 'x');
  auto options = job_options();
  options.token = token.c_str();
  braid_job* job = nullptr;
  EXPECT_BRAID_ERROR(braid_open(&options, &job), BRAID_ERROR_INVALID_ARGUMENT,
                     "token is too long; a job's token has 255 bytes at most");
  EXPECT_FALSE(message_has("xxx"));
  ::setenv("BRAID_JOB_TOKEN", token.c_str(), 1);
  options = job_options();
  EXPECT_INVALID(braid_open(&options, &job), "BRAID_JOB_TOKEN is too long");
  ::unsetenv("BRAID_JOB_TOKEN");
}

TEST_F(OpenTest, AWeightThatIsNoneNamesTheVariableAndWhatIsRight) {
  start_daemon();
  for (const char* given : {"0", "101", "-1", "1.5", "many", "3 ", "99999999999999999999"}) {
    ::setenv("BRAID_JOB_WEIGHT", given, 1);
    const auto options = job_options();
    braid_job* job = nullptr;
    EXPECT_BRAID_ERROR(braid_open(&options, &job), BRAID_ERROR_INVALID_ARGUMENT,
                       "BRAID_JOB_WEIGHT is '" + std::string(given) +
                           "'; a job's weight is a whole number from 1 to 100");
  }
  ::unsetenv("BRAID_JOB_WEIGHT");
}

TEST_F(OpenTest, PermissionDeniedNamesTheGroup) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become somebody who may not";
  start_daemon();
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    const auto options = job_options();
    braid_job* job = nullptr;
    const bool right =
        braid_open(&options, &job) == BRAID_ERROR_PERMISSION_DENIED && message_has("group 'root'");
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(OpenTest, AWayOfWaitingThatNobodyKnowsIsRefused) {
  start_daemon({.polling = 3});
  const auto given = job_options();
  braid_job* job = nullptr;
  EXPECT_BRAID_ERROR(braid_open(&given, &job), BRAID_ERROR_PROTOCOL, "polling 3");
  EXPECT_EQ(job, nullptr);
}

TEST_F(OpenTest, RefusalCarriesTheDaemonsText) {
  const std::string text = "rank 0 of job 'job' is taken by process 77 on node 'b'";
  start_daemon({.open_failure = text});
  const auto given = job_options();
  braid_job* job = nullptr;
  EXPECT_BRAID_ERROR(braid_open(&given, &job), BRAID_ERROR_MISMATCH, text);
}

// A server that speaks the frame format, but not our version.
TEST_F(OpenTest, VersionMismatchSaysWhatToUpgrade) {
  auto listener = UnixListener::create(path_, "", 0600).value();
  std::thread old_daemon([&] {
    pollfd poll{listener->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&poll, 1, 20'000), 1);
    const Fd socket(::accept(listener->fd(), nullptr, nullptr));
    flatbuffers::FlatBufferBuilder builder;
    const auto reply = proto::CreateHelloReplyDirect(builder, 0, "0.0.9", "old-node", "too new");
    builder.Finish(
        proto::CreateClientMessage(builder, proto::ClientBody::HelloReply, reply.Union()));
    FrameWriter writer(1 << 20);
    ASSERT_TRUE(writer.push({builder.GetBufferPointer(), builder.GetSize()}, {}).is_ok());
    ASSERT_TRUE(writer.flush(socket.get()).is_ok());
  });
  const auto options = job_options();
  braid_job* job = nullptr;
  EXPECT_BRAID_ERROR(braid_open(&options, &job), BRAID_ERROR_PROTOCOL,
                     "upgrade braidd on node 'old-node'");
  old_daemon.join();
}

TEST_F(OpenTest, ArgumentsAreNamed) {
  braid_job* job = nullptr;
  EXPECT_INVALID(braid_open(nullptr, &job), "braid_job_options");
  auto options = job_options();
  EXPECT_INVALID(braid_open(&options, nullptr), "job");
  EXPECT_INVALID(braid_close(nullptr), "job");
  const std::string long_name(256, 'x'), long_path(200, '/');
  const std::vector<std::pair<std::string, std::function<void()>>> wrong = {
      {"struct_size", [&] { options.struct_size = 0; }},
      {"rank is 1", [&] { options.rank = 1; }},
      {"world_size", [&] { options.world_size = 0; }},
      {"name", [&] { options.name = ""; }},
      {"name", [&] { options.name = long_name.c_str(); }},
      {"master_address", [&] { options.master_address = nullptr; }},
      {"arena_bytes", [&] { options.arena_bytes = UINT64_MAX; }},
      {"socket's path", [&] { options.socket_path = long_path.c_str(); }}};
  for (const auto& [part, change] : wrong) {
    options = job_options();
    change();
    EXPECT_INVALID(braid_open(&options, &job), part);
  }
}

TEST_F(OpenTest, TwoJobsInOneProcess) {
  start_daemon();
  braid_job* first = open_job();
  auto options = job_options();
  options.name = "other";
  braid_job* second = open_job(options);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(daemon_->connections(), 2u);
  EXPECT_EQ(register_tensor(first, "a", 4), 0u);
  EXPECT_EQ(register_tensor(second, "a", 4), 0u);
  EXPECT_EQ(braid_close(first), BRAID_OK);
  const float values[4] = {1, 2, 3, 4};
  const braid_ticket ticket = submit(second, all_reduce(0, 0, values));
  EXPECT_EQ(braid_wait(second, ticket, 0), BRAID_OK) << braid_error_message();
  EXPECT_EQ(braid_close(second), BRAID_OK);
}

TEST_F(OpenTest, ClosesWithoutTheDaemonsAnswer) {
  start_daemon({.answers_leave = false});
  braid_job* job = open_job();
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(braid_close(job), BRAID_OK);
}

TEST_F(OpenTest, NamesOfErrors) {
  EXPECT_STREQ(braid_error_name(BRAID_ERROR_NOT_FOUND), "BRAID_ERROR_NOT_FOUND");
  EXPECT_STREQ(braid_error_name(BRAID_ERROR_INTERNAL), "BRAID_ERROR_INTERNAL");
  EXPECT_STREQ(braid_error_name(-1), "BRAID_ERROR_UNKNOWN");
  EXPECT_STREQ(braid_error_name(13), "BRAID_ERROR_UNKNOWN");
  EXPECT_STRNE(braid_version(), "");
}

}  // namespace
}  // namespace braid
