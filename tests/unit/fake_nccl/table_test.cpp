// SPDX-License-Identifier: Apache-2.0
// The product's table, filled from the fake NCCL: as in a process that has loaded one.
#include <gtest/gtest.h>

#include "gpu/nccl.h"
#include "ranks.h"

namespace fake_nccl_testing {
namespace {

using braid::Nccl;
using braid::StatusCode;

TEST(NcclTable, IsThatOfTheLibraryInTheProcess) {
  own_process::run({{"FAKE_NCCL_VERSION", "22602"}, {"BRAID_NCCL_LIBRARY", ""}}, [] {
    const auto found = Nccl::get();
    ASSERT_TRUE(found) << found.status().to_string();
    const Nccl& nccl = **found;
    EXPECT_EQ(nccl.version_text(), "2.26.2");
    EXPECT_EQ(nccl.AllGather, &ncclAllGather);
    EXPECT_EQ(nccl.GetLastError, &ncclGetLastError);
    EXPECT_TRUE(nccl.check(nccl.GroupStart(), "ncclGroupStart"));
    EXPECT_TRUE(nccl.check(nccl.GroupEnd(), "ncclGroupEnd"));
    const auto status = nccl.check(nccl.CommAbort(reinterpret_cast<NcclComm>(1)), "ncclCommAbort");
    EXPECT_EQ(status.code(), StatusCode::Unavailable);
    EXPECT_EQ(status.cause(), static_cast<int>(NcclResult::InvalidArgument));
    EXPECT_EQ(status.message(),
              "NCCL's ncclCommAbort failed: invalid argument (run with NCCL_DEBUG=WARN for details)"
              " (4): there is no such communicator, or not any more");
  });
}

}  // namespace
}  // namespace fake_nccl_testing
