// SPDX-License-Identifier: Apache-2.0
#include "communicator.h"

#include <map>
#include <mutex>
#include <utility>

namespace fake_nccl {
namespace {

constexpr std::uintptr_t kFirstHandle = 0x7000000000000000, kHandleStep = 16;

struct Registry {
  std::mutex mutex;
  std::uintptr_t next = kFirstHandle;
  std::map<std::uintptr_t, CommunicatorPointer> open;
};

Registry& registry() {
  static Registry* const kRegistry = new Registry;
  return *kRegistry;
}

}  // namespace

NcclComm add_communicator(CommunicatorPointer communicator) {
  const std::scoped_lock lock(registry().mutex);
  registry().next += kHandleStep;
  registry().open.emplace(registry().next, std::move(communicator));
  return reinterpret_cast<NcclComm>(registry().next);
}

CommunicatorPointer communicator_of(NcclComm handle) {
  const std::scoped_lock lock(registry().mutex);
  const auto found = registry().open.find(reinterpret_cast<std::uintptr_t>(handle));
  return found == registry().open.end() ? nullptr : found->second;
}

CommunicatorPointer remove_communicator(NcclComm handle) {
  const std::scoped_lock lock(registry().mutex);
  const auto node = registry().open.extract(reinterpret_cast<std::uintptr_t>(handle));
  return node.empty() ? nullptr : node.mapped();
}

std::uint64_t open_communicators() {
  const std::scoped_lock lock(registry().mutex);
  return registry().open.size();
}

CurrentContext::CurrentContext(const Communicator& communicator)
    : result_(cuCtxPushCurrent(communicator.context)) {}

CurrentContext::~CurrentContext() {
  CUcontext popped = nullptr;
  if (result_ == CUDA_SUCCESS) (void)cuCtxPopCurrent(&popped);
}

}  // namespace fake_nccl
