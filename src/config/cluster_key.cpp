// SPDX-License-Identifier: Apache-2.0
#include "config/cluster_key.h"

#include "config/secret_file.h"

namespace braid {

Result<std::vector<uint8_t>> load_cluster_key(const std::string& path) {
  if (path.empty()) return std::vector<uint8_t>{};
  return load_secret_file("control.cluster_key_file", path, "copy it to all nodes");
}

}  // namespace braid
