// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <stdlib.h>

#include "removed_path.h"

namespace braid {

// Gone with everything in it at the end of the scope.
class TemporaryDirectory {
 public:
  std::string file(const std::string& name) const { return path() + "/" + name; }
  const std::string& path() const { return path_.get(); }

 private:
  static std::string make() {
    char name[] = "/tmp/braid-ipc-test-XXXXXX";
    return ::mkdtemp(name);
  }

  const testing::RemovedPath path_{make()};
};

}  // namespace braid
