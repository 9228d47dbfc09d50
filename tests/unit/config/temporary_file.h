// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "ipc/temporary_directory.h"

namespace braid {

// A file in a directory of its own; both are gone with it.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content, mode_t mode = 0600) {
    std::ofstream(path()) << content;
    if (::chmod(path().c_str(), mode) != 0) ADD_FAILURE() << "chmod failed";
  }
  std::string path() const { return folder_.file("file"); }
  const std::string& directory() const { return folder_.path(); }

 private:
  TemporaryDirectory folder_;
};

}  // namespace braid
