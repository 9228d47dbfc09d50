// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace braid {

// A file in a directory of its own; both are gone with it.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content, mode_t mode = 0600) {
    std::string pattern = testing::TempDir() + "braid-config-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    directory_ = pattern;
    std::ofstream(path()) << content;
    if (::chmod(path().c_str(), mode) != 0) ADD_FAILURE() << "chmod failed";
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    ::unlink(path().c_str());
    ::rmdir(directory_.c_str());
  }

  std::string path() const { return directory_ + "/file"; }
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
};

}  // namespace braid
