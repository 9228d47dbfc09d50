// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace braid {

// Measured data that the project does not carry: $BRAID_SHARED, else the folder next to the
// project. Tests that need a file of it skip where it is absent.
inline std::string shared_data(const std::string& name) {
  const char* folder = std::getenv("BRAID_SHARED");
  const std::filesystem::path root =
      folder != nullptr ? std::filesystem::path(folder)
                        : std::filesystem::path(BRAID_PROJECT_FOLDER) / ".." / "shared";
  return (root / "data" / name).string();
}

}  // namespace braid

#define BRAID_SKIP_WITHOUT(path)                                        \
  if (!std::filesystem::exists(path)) {                                 \
    GTEST_SKIP() << (path) << " is absent; BRAID_SHARED may say where"; \
  }
