// SPDX-License-Identifier: Apache-2.0
#include "daemon/config_reload.h"

#include "base/log.h"
#include "config/load.h"
#include "config/reload.h"
#include "config/secret_file.h"

namespace braid {

std::optional<DaemonConfig> reload_config(const DaemonInvocation& invocation,
                                          const DaemonConfig& running) {
  LoadedConfig loaded = load_config(invocation.config_file, invocation.settings,
                                    invocation.environment, invocation.defaults);
  if (loaded.config.page.access.starts_with('/')) {
    if (const auto token = load_page_token(loaded.config.page.access); !token)
      loaded.errors.push_back(tell_origin(token.status().message(), loaded.origins));
  }
  for (const std::string& error : loaded.errors)
    BRAID_LOG_ERROR("SIGHUP: nothing was changed, the new configuration is wrong: {}", error);
  if (!loaded.is_ok()) return std::nullopt;
  const auto changes = diff_config(running, loaded.config);
  if (changes.empty()) BRAID_LOG_INFO("SIGHUP: the configuration has not changed");
  for (const ConfigChange& change : changes) {
    if (change.reloadable) {
      BRAID_LOG_INFO("SIGHUP: {}: {} → {}", change.key, change.before, change.after);
    } else {
      BRAID_LOG_WARN("SIGHUP: {}: {} → {} needs a restart; it stays as it was", change.key,
                     change.before, change.after);
    }
  }
  return merge_reloadable(running, loaded.config);
}

}  // namespace braid
