// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"

namespace braid {

// A listening Unix stream socket at a path, non-blocking. Removes its file when it goes (unless
// somebody replaced it).
class UnixListener {
 public:
  // A socket that nobody listens on is replaced; one with a listener is ALREADY_EXISTS. The last
  // directory of the path is made if it is missing. Group empty: the process's own.
  static Result<std::unique_ptr<UnixListener>> create(const std::string& path,
                                                      const std::string& group, uint32_t mode);
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;
  ~UnixListener();

  int fd() const { return fd_.get(); }
  // The caller closes it.
  Fd take_fd() { return std::move(fd_); }
  const std::string& path() const { return path_; }

 private:
  UnixListener(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  Fd fd_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace braid
