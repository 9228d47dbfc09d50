// SPDX-License-Identifier: Apache-2.0
// Loading NCCL: each test that loads one does so in a process of its own.
#include "gpu/nccl.h"

#include <cstdlib>
#include <string>

#include <dlfcn.h>
#include <glob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "own_process.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

TEST(NcclLoad, SaysWhenThereIsNone) {
  const auto nccl = Nccl::load("libnccl-is-not-here.so.2");
  ASSERT_FALSE(nccl);
  EXPECT_EQ(nccl.status().code(), StatusCode::NotFound);
  EXPECT_THAT(nccl.status().message(), HasSubstr("no NCCL: libnccl-is-not-here.so.2"));
}

TEST(NcclLoad, RefusesAnOldOne) {
  const auto nccl = Nccl::load(BARE_NCCL_OLD);
  ASSERT_FALSE(nccl);
  EXPECT_EQ(nccl.status().code(), StatusCode::Unavailable);
  EXPECT_THAT(nccl.status().message(),
              HasSubstr("is NCCL 2.8.4; braid needs 2.10.0 or a newer one"));
}

TEST(NcclLoad, RefusesWhatLacksAFunction) {
  const auto nccl = Nccl::load(BARE_NCCL_LACKING);
  ASSERT_FALSE(nccl);
  EXPECT_EQ(nccl.status().code(), StatusCode::Unavailable);
  EXPECT_THAT(nccl.status().message(), HasSubstr("has no function ncclGetUniqueId: is it NCCL?"));
}

TEST(NcclLoad, OfTheProcessIsTheOneThatIsLoadedAlready) {
  own_process::run({{"BRAID_NCCL_LIBRARY", ""}}, [] {
    ASSERT_NE(::dlopen(BARE_NCCL_OLD, RTLD_NOW), nullptr) << ::dlerror();
    const auto nccl = Nccl::get();
    ASSERT_FALSE(nccl);
    EXPECT_THAT(nccl.status().message(), HasSubstr("libnccl.so.2 is NCCL 2.8.4"));
  });
}

TEST(NcclLoad, OfTheProcessIsTheOneThatItsEnvironmentNames) {
  own_process::run({{"BRAID_NCCL_LIBRARY", BARE_NCCL_LACKING}}, [] {
    ASSERT_NE(::dlopen(BARE_NCCL_OLD, RTLD_NOW), nullptr) << ::dlerror();
    const auto nccl = Nccl::get();
    ASSERT_FALSE(nccl);
    EXPECT_THAT(nccl.status().message(), HasSubstr("has no function ncclGetUniqueId"));
  });
}

// NVIDIA's library, where the tests of PyTorch have brought it, or where $BRAID_NCCL_LIBRARY says.
std::string find_real_nccl() {
  if (const char* const given = std::getenv("BRAID_NCCL_LIBRARY")) return given;
  glob_t found{};
  const bool is_there =
      ::glob(BRAID_VENV "/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2", 0, nullptr,
             &found) == 0;
  std::string path = is_there ? found.gl_pathv[0] : "";
  ::globfree(&found);
  return path;
}

bool has_cuda_driver() { return ::dlopen("libcuda.so.1", RTLD_NOW) != nullptr; }

TEST(NcclLoad, FindsEverythingInNvidiasLibrary) {
  const std::string path = find_real_nccl();
  if (path.empty()) {
    GTEST_SKIP() << "there is no libnccl.so.2 in " BRAID_VENV
                    ", and $BRAID_NCCL_LIBRARY is not "
                    "set";
  }
  own_process::run({{"BRAID_NCCL_LIBRARY", path}}, [&] {
    const auto found = Nccl::get();
    ASSERT_TRUE(found) << found.status().to_string();
    const Nccl& nccl = **found;
    EXPECT_GE(nccl.version, kNcclLeastVersion);
    EXPECT_THAT(nccl.version_text(), ::testing::StartsWith("2."));
    EXPECT_NE(nccl.GetLastError, nullptr);
    EXPECT_EQ(*Nccl::get(), &nccl);
    NcclUniqueId id{};
    EXPECT_TRUE(nccl.check(nccl.GetUniqueId(&id), "ncclGetUniqueId"));
    EXPECT_STREQ(nccl.GetErrorString(NcclResult::InProgress), "NCCL operation in progress");
    if (has_cuda_driver()) return;
    NcclComm comm = nullptr;
    const Status status = nccl.check(nccl.CommInitRank(&comm, 1, id, 0), "ncclCommInitRank");
    EXPECT_EQ(status.code(), StatusCode::Unavailable);
    EXPECT_EQ(status.cause(), static_cast<int>(NcclResult::UnhandledCudaError));
    EXPECT_THAT(status.message(),
                HasSubstr("NCCL's ncclCommInitRank failed: unhandled cuda error (run with"));
    EXPECT_THAT(status.message(), HasSubstr("CUDA driver version is insufficient"));
  });
}

}  // namespace
}  // namespace braid
