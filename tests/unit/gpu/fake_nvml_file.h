// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <unistd.h>

#include "removed_path.h"

namespace braid::testing {

// What the fake library of this process says: see tests/fake_nvml/fake_nvml.cpp.
class FakeNvmlFile {
 public:
  explicit FakeNvmlFile(const std::string& text) {
    write(text);
    ::setenv("FAKE_NVML_FILE", path().c_str(), 1);
  }
  FakeNvmlFile(const FakeNvmlFile&) = delete;
  FakeNvmlFile& operator=(const FakeNvmlFile&) = delete;
  ~FakeNvmlFile() { ::unsetenv("FAKE_NVML_FILE"); }

  void write(const std::string& text) const {
    const std::string next = path() + ".next";
    std::ofstream(next) << text;
    std::rename(next.c_str(), path().c_str());
  }
  const std::string& path() const { return path_.get(); }

 private:
  const RemovedPath path_{"/tmp/braid-fake-nvml-" + std::to_string(::getpid())};
};

}  // namespace braid::testing
