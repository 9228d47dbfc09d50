// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/config.h"

namespace braid {

// What a value of one key must be. Messages say what is wrong and what would be right, without
// naming the key.
Status check_node_name(const std::string& name);
Status check_rack(const std::string& rack);
Status check_tcp(const std::string& tcp);
Status check_encryption(const std::string& encryption);
Status check_polling(const std::string& mode);
Status check_address(const std::string& address);  // a numeric IPv4 or IPv6 address
Status check_address_or_auto(const std::string& address);
Status check_cluster_key_file(const std::string& path);  // absolute, or empty
Status check_socket_path(const std::string& path);
Status check_group(const std::string& group);
Status check_rail(const std::string& rail);
Status check_transport(const std::string& transport);
Status check_planner(const std::string& planner);  // see plan/planner.h; "first" is none
Status check_tune_mode(const std::string& mode);
Status check_codec(const std::string& name);
Status check_tune_pin(const std::string& parameter);
Status check_state_directory(const std::string& path);
Status check_guard_limit(const std::string& limit);
Status check_page_access(const std::string& access);
Status check_level(const std::string& level);
Status check_log_format(const std::string& format);

// One of guard.limits: "saturation=0.75".
struct GuardLimitSetting {
  std::string name;
  double value = 0;
};
Result<GuardLimitSetting> parse_guard_limit(const std::string& text);

struct ConfigConflict {
  std::string_view key;    // the key to blame…
  std::string_view other;  // …unless only this one was set by the user
  std::string message;
};

// Values that are right by themselves but not together.
std::vector<ConfigConflict> find_conflicts(const DaemonConfig& config);

}  // namespace braid
