// SPDX-License-Identifier: Apache-2.0
#include "config/reload.h"

#include "config/config_keys.h"

namespace braid {

std::vector<ConfigChange> diff_config(const DaemonConfig& before, const DaemonConfig& after) {
  std::vector<ConfigChange> changes;
  for (const ConfigKey& key : config_keys()) {
    std::string old_value = format_config_value(key, before);
    std::string new_value = format_config_value(key, after);
    if (old_value == new_value) continue;
    changes.push_back({key.name, std::move(old_value), std::move(new_value), key.reloadable});
  }
  return changes;
}

DaemonConfig merge_reloadable(const DaemonConfig& running, const DaemonConfig& loaded) {
  DaemonConfig merged = running;
  for (const ConfigChange& change : diff_config(running, loaded)) {
    if (!change.reloadable) continue;
    const Status status = set_config_value(*find_config_key(change.key), change.after, merged);
    BRAID_ASSERT(status.is_ok(), "a loaded value was checked");
  }
  return merged;
}

}  // namespace braid
