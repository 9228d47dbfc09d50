// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <stdlib.h>

namespace braid {

// Gone with everything in it at the end of the scope.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/tmp/braid-ipc-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace braid
