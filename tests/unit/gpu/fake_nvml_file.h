// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <unistd.h>

namespace braid::testing {

// What the fake library of this process says: see tests/fake_nvml/fake_nvml.cpp.
class FakeNvmlFile {
 public:
  explicit FakeNvmlFile(const std::string& text) {
    write(text);
    ::setenv("FAKE_NVML_FILE", path_.c_str(), 1);
  }
  FakeNvmlFile(const FakeNvmlFile&) = delete;
  FakeNvmlFile& operator=(const FakeNvmlFile&) = delete;
  ~FakeNvmlFile() {
    ::unsetenv("FAKE_NVML_FILE");
    std::remove(path_.c_str());
  }

  void write(const std::string& text) const {
    const std::string next = path_ + ".next";
    std::ofstream(next) << text;
    std::rename(next.c_str(), path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ = "/tmp/braid-fake-nvml-" + std::to_string(::getpid());
};

}  // namespace braid::testing
