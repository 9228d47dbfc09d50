// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"

namespace braid {

// Memory that is reserved in multiples of this, from such a border on, comes as huge pages where
// the kernel has them.
inline constexpr uint64_t kHugePageBytes = 2 << 20;

// An error unless `fd` is a memfd of ordinary pages. Asks no file system, so it never blocks, and
// what passes it can be closed at once, too.
Status check_memfd(int fd, const std::string& what);

// A memfd and its mapping. Its size is fixed for life by seals, so that a mapping of it cannot be
// cut short by the process on the other side (which would be a SIGBUS here). Sparse: address space
// is taken at once, memory only where it is touched or reserved. Unmapped and closed with its
// owner. Any thread, one at a time.
class SharedMemory {
 public:
  enum class Access { ReadOnly, ReadWrite };

  SharedMemory() = default;  // empty: no descriptor, no memory
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // New memory of `bytes` zeros, mapped read-write here. With `peers` = ReadOnly fd() is only for
  // reading, and another user who gets it cannot make more of it. Where /proc is not there the
  // memory is sealed against writing instead, and cannot be given back (on kernels before 5.1
  // nothing but good manners keeps peers from writing then).
  static Result<SharedMemory> create(const std::string& name, uint64_t bytes, Access peers);

  // New memory for inputs that peers read: as with `peers` = ReadOnly, and missing_bytes() can tell
  // them which pages there are. `holes`: Never: a page that there is stays, and none is given back
  // (on kernels before 5.1 they may still go).
  enum class Holes { Possible, Never };
  static Result<SharedMemory> create_input(const std::string& name, uint64_t bytes, Holes holes);

  // Memory that another process made. Refused unless it is a memfd of ordinary pages and exactly
  // `bytes` (which are at most `bytes_max`) whose size is sealed. `what` names it in errors: "input
  // arena". What is written here (ReadWrite) gets a seal against holes where its maker lets it, so
  // that nobody takes pages out to have them made here.
  static Result<SharedMemory> adopt(Fd fd, uint64_t bytes, uint64_t bytes_max, Access access,
                                    const std::string& what);

  // Gets the memory for [offset, offset + bytes) now, so that being out of memory is an error here
  // and not a SIGBUS at the first touch. Takes up to a second for 1 GiB: not on a loop. Needs a
  // descriptor that is open for writing. Others may use the rest of the memory meanwhile.
  Status reserve(uint64_t offset, uint64_t bytes);

  // Gives the memory of [offset, offset + bytes) back to the kernel: whole huge pages, where it has
  // those. It reads as zeros afterwards, and must be reserved again before it is used. Takes up to
  // a tenth of a second for 512 MiB of small pages: not on a loop. Only for memory made here.
  Status give_back(uint64_t offset, uint64_t bytes);
  // Bytes of the pages of [offset, offset + bytes) that there are not: a look at them here makes
  // them, and they count as this process's memory. All that the kernel does not tell of counts, and
  // a page that was swapped out does. Asks for nothing that another process could hold.
  uint64_t missing_bytes(uint64_t offset, uint64_t bytes) const;
  // By its seals nobody can make holes: what was not missing once never will be.
  bool keeps_pages() const { return keeps_pages_; }
  // Bytes of the pages that exist. 0 if the kernel does not say.
  uint64_t memory_bytes() const;

  // For peers: what they may do with it follows from create().
  int fd() const { return peers_fd_.is_valid() ? peers_fd_.get() : fd_.get(); }
  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }
  bool is_empty() const { return data_ == nullptr; }

 private:
  // How a new memory may be used.
  struct Use {
    Access peers = Access::ReadWrite;
    mode_t mode = 0;  // with ReadOnly: of the file
    Holes holes = Holes::Possible;
  };

  static Result<SharedMemory> make(const std::string& name, uint64_t bytes, const Use& use);
  Status map(uint64_t bytes, Access access, const std::string& what);
  Status restrict_peers(const std::string& what, mode_t mode);
  void make_huge(uint64_t begin, uint64_t end);
  void unmap();

  Fd fd_;
  Fd peers_fd_;  // none: fd_ is for peers, too
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  bool keeps_pages_ = false;
};

}  // namespace braid
