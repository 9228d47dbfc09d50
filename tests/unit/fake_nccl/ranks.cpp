// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fake_nccl_testing {

DeviceBytes::DeviceBytes(std::size_t bytes) {
  EXPECT_EQ(cuMemAlloc(&address_, std::max<std::size_t>(bytes, 1)), CUDA_SUCCESS);
}

std::byte* DeviceBytes::bytes(std::size_t byte) const {
  return static_cast<std::byte*>(fake_cuda_bytes(address_)) + byte;
}

struct Common::Shared {
  std::array<NcclUniqueId, 8> ids;
  std::array<std::atomic<bool>, 8> are_ids_made, flags;
};

Common::Common()
    : shared_(static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}

NcclUniqueId Common::share_id(int rank, std::size_t number) {
  if (rank == 0) {
    EXPECT_NCCL(ncclGetUniqueId(&shared_->ids.at(number)));
    shared_->are_ids_made.at(number) = true;
  }
  EXPECT_TRUE(wait_until([&] { return shared_->are_ids_made.at(number).load(); }));
  return shared_->ids.at(number);
}

void Common::raise(std::size_t flag) { shared_->flags.at(flag) = true; }

void Common::wait_for(std::size_t flag) const {
  EXPECT_TRUE(wait_until([&] { return shared_->flags.at(flag).load(); })) << flag;
}

void Rank::open_gpu(int device) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  stream = make_stream();
}

CUstream Rank::make_stream() const {
  CUstream made = nullptr;
  EXPECT_EQ(cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  return made;
}

NcclResult Rank::try_init(NcclComm& communicator, std::size_t number) {
  return ncclCommInitRank(&communicator, ranks, common.share_id(rank, number), rank);
}

namespace {

Environment with_devices(Environment environment, int devices) {
  environment.emplace("FAKE_CUDA_DEVICES", std::to_string(devices));
  return environment;
}

}  // namespace

void run_threads(int ranks, const Environment& environment, const RankBody& body) {
  own_process::run(with_devices(environment, ranks), [&] {
    Common common;
    std::vector<std::thread> threads;
    for (int number = 0; number < ranks; ++number) {
      threads.emplace_back([&, number] {
        Rank rank(number, ranks, common);
        rank.open_gpu(number);
        body(rank);
      });
    }
    for (auto& thread : threads) thread.join();
  });
}

void run_processes(int ranks, const Environment& environment, const RankBody& body,
                   const std::function<void(int rank)>& prepare) {
  own_process::run(with_devices(environment, ranks), [&] {
    Common common;
    std::vector<pid_t> processes;
    for (int number = 0; number < ranks; ++number) {
      const pid_t process = fork();
      if (process != 0) {
        processes.push_back(process);
        continue;
      }
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is ended leaves nothing behind
      if (prepare) prepare(number);
      Rank rank(number, ranks, common);
      rank.open_gpu(number);
      body(rank);
      own_process::end_with_failures();
    }
    for (const pid_t process : processes) {
      int status = 0;
      EXPECT_EQ(waitpid(process, &status, 0), process);
      EXPECT_TRUE(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL)
          << status;
    }
  });
}

bool wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

NcclResult async_error(NcclComm comm) {
  NcclResult error = NcclResult::Success;
  EXPECT_NCCL(ncclCommGetAsyncError(comm, &error));
  return error;
}

}  // namespace fake_nccl_testing
