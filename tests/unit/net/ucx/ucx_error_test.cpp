// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_error.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/fd.h"

namespace braid {
namespace {

// UCX's error, told while the process can open so many descriptors.
Status told_with(int left, ucs_status_t error) {
  rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next_free = Fd(::open("/dev/null", O_RDONLY)).get();
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(next_free + left);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Status status = status_from_ucx(error, "cannot make a UCX worker");
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  return status;
}

TEST(UcxErrorTest, ALackOfDescriptorsIsNamed) {
  const Status status = told_with(2, UCS_ERR_IO_ERROR);
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_EQ(status.cause(), UCS_ERR_IO_ERROR);
  EXPECT_TRUE(status.message().starts_with("cannot make a UCX worker: Input/output error: "))
      << status.message();
  EXPECT_NE(status.message().find("no file descriptors left (limit "), std::string::npos);
  EXPECT_NE(status.message().find("LimitNOFILE"), std::string::npos) << status.message();
}

TEST(UcxErrorTest, OtherErrorsSayWhatUcxSays) {
  EXPECT_EQ(told_with(500, UCS_ERR_IO_ERROR).message(),
            "cannot make a UCX worker: Input/output error");
  EXPECT_EQ(told_with(2, UCS_ERR_CONNECTION_RESET).message(),
            "cannot make a UCX worker: Connection reset by remote peer")
      << "that has another cause";
}

}  // namespace
}  // namespace braid
