// SPDX-License-Identifier: Apache-2.0
#include "own_process.h"

#include <atomic>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace braid::client {
namespace {

using Number = std::atomic<pid_t>;

// Memory that the kernel empties in a forked child, however that was made; nullptr: there is none.
// Never given back: threads may still call braid while the process ends.
Number* make_number() {
  void* memory =
      ::mmap(nullptr, sizeof(Number), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (::madvise(memory, sizeof(Number), MADV_WIPEONFORK) == 0) return new (memory) Number(0);
  ::munmap(memory, sizeof(Number));
  return nullptr;
}

}  // namespace

pid_t own_process() {
  static Number* const number = make_number();
  if (number == nullptr) return ::getpid();
  const pid_t known = number->load(std::memory_order_relaxed);
  if (known != 0) return known;
  const pid_t asked = ::getpid();
  number->store(asked, std::memory_order_relaxed);
  return asked;
}

}  // namespace braid::client
