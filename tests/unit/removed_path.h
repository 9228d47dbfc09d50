// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace braid::testing {

// A file or folder of a test. It goes, with everything in it, at the end of the scope; or with the
// process that has made it, for std::exit() destroys no fixture (own_process.h).
class RemovedPath {
 public:
  explicit RemovedPath(std::string path) : path_(std::move(path)) {
    const std::scoped_lock lock(left().mutex);
    left().paths.insert(path_);
  }
  RemovedPath(const RemovedPath&) = delete;
  RemovedPath& operator=(const RemovedPath&) = delete;
  ~RemovedPath() {
    const std::scoped_lock lock(left().mutex);
    left().paths.erase(path_);
    left().remove(path_);
  }
  const std::string& get() const { return path_; }

 private:
  struct Left {
    std::mutex mutex;
    std::set<std::string> paths;
    const pid_t process = ::getpid();  // a child that is forked has a copy, and removes nothing

    ~Left() {
      for (const std::string& path : paths) remove(path);
    }
    void remove(const std::string& path) const {
      std::error_code ignored;
      if (process == ::getpid()) std::filesystem::remove_all(path, ignored);
    }
  };
  static Left& left() {
    static Left left;
    return left;
  }

  const std::string path_;
};

}  // namespace braid::testing
