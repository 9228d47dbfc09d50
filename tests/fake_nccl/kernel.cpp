// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "fake_cuda/fake_cuda.h"
#include "settings.h"

namespace fake_nccl {
namespace {

struct Kernel {
  CommunicatorPointer communicator;
  std::vector<Operation> operations;
  std::uint64_t turn;  // of the communicator's kernels
};

/// All that have not ended. A device that fails drops some: they stay here.
struct Kernels {
  std::mutex mutex;
  std::set<Kernel*> pending;
  std::uint64_t launched = 0;
};

Kernels& kernels() {
  static Kernels* const kKernels = new Kernels;
  return *kKernels;
}

/// Waits for other processes without holding a core.
class Looks {
 public:
  void pause() {
    if (++looks_ < kQuick) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(30));
  }
  void restart() { looks_ = 0; }

 private:
  static constexpr int kQuick = 20;
  int looks_ = 0;
};

void spin_until_abort(const Communicator& communicator) {
  for (Looks looks; !communicator.is_aborted;) looks.pause();
}

/// True if the settings say that the kernel is not to end by itself.
bool is_to_hang(Kernel& kernel) {
  bool hangs = false;
  for (const Operation& operation : kernel.operations) {
    if (operation.number == settings().hang) hangs = true;
    if (settings().async_error_from != 0 && operation.number >= settings().async_error_from) {
      kernel.communicator->async_error = settings().async_error;
      hangs = true;
    }
  }
  return hangs;
}

/// Returns when all is done, or with the abort.
void carry(Communicator& communicator, const std::vector<Operation>& operations) {
  Looks looks;
  try {
    Transfer transfer(communicator, operations);
    while (!transfer.is_done()) {
      if (communicator.is_aborted) return;
      // One that disagrees with its peers goes no further, and does not end.
      if (communicator.meeting.failure() == NcclResult::Success && transfer.step()) {
        looks.restart();
      } else {
        looks.pause();
      }
    }
    transfer.finish();
  } catch (const CUresult error) {
    fake_cuda_fail_device(communicator.device, static_cast<int>(error));
  }
}

void run(void* argument) {
  auto* const kernel = static_cast<Kernel*>(argument);
  Communicator& communicator = *kernel->communicator;
  for (Looks looks; communicator.ended != kernel->turn && !communicator.is_aborted;) looks.pause();
  if (is_to_hang(*kernel)) spin_until_abort(communicator);
  if (!communicator.is_aborted) carry(communicator, kernel->operations);
  ++communicator.ended;
  const std::scoped_lock lock(kernels().mutex);
  kernels().pending.erase(kernel);
  delete kernel;
}

}  // namespace

CUresult launch(const CommunicatorPointer& communicator, std::vector<Operation> operations,
                CUstream stream) {
  auto* const kernel = new Kernel{communicator, std::move(operations), communicator->queued++};
  {
    const std::scoped_lock lock(kernels().mutex);
    kernels().pending.insert(kernel);
    ++kernels().launched;
  }
  return static_cast<CUresult>(fake_cuda_launch(stream, run, kernel));
}

std::uint64_t launched_kernels() {
  const std::scoped_lock lock(kernels().mutex);
  return kernels().launched;
}

std::uint64_t pending_kernels() {
  const std::scoped_lock lock(kernels().mutex);
  return kernels().pending.size();
}

}  // namespace fake_nccl
