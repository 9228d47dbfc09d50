// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <sys/types.h>

#include "braidctl/ctl_report.h"

namespace braid {

// The parts of `braidctl report` that are read from this machine, each as a JSON object. What this
// user may not read is left out.

// The process that listens on a socket, by the kernel; nothing: nobody does.
std::optional<pid_t> process_behind(const std::string& socket);

nlohmann::ordered_json report_versions();
nlohmann::ordered_json report_machine();
nlohmann::ordered_json report_limits(std::optional<pid_t> daemon);  // else of this process
nlohmann::ordered_json report_sysctls();
nlohmann::ordered_json report_interfaces();
nlohmann::ordered_json report_environment();
// The keys that were set, where, and all mistakes. The files that they name are not read.
nlohmann::ordered_json report_configuration(std::optional<pid_t> daemon,
                                            const ReportCommand& command);
// The last lines of the daemon's log, and where they are from.
nlohmann::ordered_json report_log(std::optional<pid_t> daemon, const ReportCommand& command);

}  // namespace braid
