// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cerrno>
#include <set>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <uv.h>

namespace braid {
namespace {

TEST(StatusTest, SaysItsCodeAndItsMessage) {
  const Status status =
      make_status(StatusCode::Mismatch, "rank {} says {}, rank {} says {}", 0, 10, 1, 20);
  EXPECT_FALSE(status.is_ok());
  EXPECT_EQ(status.message(), "rank 0 says 10, rank 1 says 20");
  EXPECT_EQ(status.to_string(), "MISMATCH: rank 0 says 10, rank 1 says 20");
}

TEST(StatusTest, ContextComesInFrontAndKeepsCodeAndCause) {
  const Status status = Status(StatusCode::NotFound, "no such rail", 19).with_context("transport");
  EXPECT_EQ(status.code(), StatusCode::NotFound);
  EXPECT_EQ(status.cause(), 19);
  EXPECT_EQ(status.message(), "transport: no such rail");
}

TEST(StatusTest, TakesTheCodeThatFitsAnErrno) {
  const Status missing = Status::from_errno(ENOENT, "cannot open x");
  EXPECT_EQ(missing.code(), StatusCode::NotFound);
  EXPECT_EQ(missing.cause(), ENOENT);
  EXPECT_EQ(missing.message(), "cannot open x: No such file or directory");
  EXPECT_EQ(Status::from_errno(EACCES, "").code(), StatusCode::PermissionDenied);
  EXPECT_EQ(Status::from_errno(EMFILE, "").code(), StatusCode::ResourceExhausted);
  EXPECT_EQ(Status::from_errno(ECONNRESET, "").code(), StatusCode::Unavailable);
  EXPECT_EQ(Status::from_errno(ETIMEDOUT, "").code(), StatusCode::DeadlineExceeded);
  EXPECT_EQ(Status::from_errno(EADDRINUSE, "").code(), StatusCode::AlreadyExists);
  EXPECT_EQ(Status::from_errno(EXDEV, "").code(), StatusCode::Internal);
}

TEST(StatusTest, ALimitOfDescriptorsIsNamedWithItsKnob) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const std::string advice =
      fmt::format("no file descriptors left (limit {}; ulimit -n, or LimitNOFILE", files.rlim_cur);
  const Status of_errno = Status::from_errno(EMFILE, "cannot make a socket");
  EXPECT_TRUE(of_errno.message().starts_with("cannot make a socket: Too many open files: "));
  EXPECT_NE(of_errno.message().find(advice), std::string::npos) << of_errno.message();
  const Status of_uv = Status::from_uv(UV_EMFILE, "cannot make a loop");
  EXPECT_NE(of_uv.message().find(advice), std::string::npos) << of_uv.message();
  EXPECT_EQ(of_uv.code(), StatusCode::ResourceExhausted);
  EXPECT_EQ(of_uv.cause(), UV_EMFILE);
  const Status of_machine = Status::from_errno(ENFILE, "cannot make a socket");
  EXPECT_NE(of_machine.message().find("fs.file-max"), std::string::npos) << of_machine.message();
}

TEST(StatusTest, TakesTheCodeThatFitsALibuvError) {
  const Status refused = Status::from_uv(UV_ECONNREFUSED, "cannot connect");
  EXPECT_EQ(refused.code(), StatusCode::Unavailable);
  EXPECT_EQ(refused.cause(), UV_ECONNREFUSED);
  EXPECT_EQ(refused.message(), "cannot connect: connection refused");
  EXPECT_EQ(Status::from_uv(UV_EOF, "").code(), StatusCode::Internal);
}

TEST(StatusTest, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  for (uint8_t code = 0; code <= kStatusCodeMax; ++code) {
    names.insert(status_code_name(static_cast<StatusCode>(code)));
  }
  EXPECT_EQ(names.size(), kStatusCodeMax + 1u);
  EXPECT_FALSE(names.contains("UNKNOWN"));
}

TEST(ResultDeathTest, AValueThatIsNotThereIsABug) {
  const Result<int> result = Status(StatusCode::NotFound, "no rail 'eth7'");
  EXPECT_DEATH(static_cast<void>(result.value()), "no rail 'eth7'");
}

TEST(ResultDeathTest, AnErrorThatIsNoneIsABug) {
  EXPECT_DEATH(static_cast<void>(Result<int>(Status::ok())), "needs an error");
}

}  // namespace
}  // namespace braid
