// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_report.h"

#include <cstdint>
#include <ctime>
#include <iterator>
#include <optional>
#include <regex>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include "arguments/complete_words.h"
#include "arguments/format_option.h"
#include "braidctl/node_report.h"
#include "braidctl/status_view.h"
#include "client/status_client.h"
#include "metrics/status.h"

namespace braid {
namespace {

using SectionsJson = nlohmann::ordered_json;

constexpr uint32_t kReportTimeoutMs = 5000;

std::string plain(const SectionsJson& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// A section as text: "name: value" lines, and lists a line each.
std::string section_text(const std::string& name, const SectionsJson& section) {
  std::string text = fmt::format("== {}\n", name);
  for (const auto& [key, value] : section.items()) {
    if (!value.is_array()) {
      text += fmt::format("{}: {}\n", key, plain(value));
      continue;
    }
    text += fmt::format("{}:\n", key);
    for (const SectionsJson& one : value) text += fmt::format("  {}\n", plain(one));
  }
  return text + '\n';
}

// What there is nothing to say of is left out.
void drop_empty(SectionsJson& section) {
  for (auto one = section.begin(); one != section.end();)
    one = one->empty() || (one->is_string() && one->get<std::string>().empty()) ? section.erase(one)
                                                                                : std::next(one);
}

SectionsJson daemon_section(const std::string& path, std::optional<pid_t> process,
                            const Result<std::string>& status) {
  SectionsJson daemon;
  daemon["socket"] = path;
  daemon["answers"] = status.is_ok();
  if (process) daemon["process"] = *process;
  if (!status) daemon["error"] = status.status().message();
  return daemon;
}

}  // namespace

std::string without_secrets(const std::string& line) {
  static const std::regex named(
      R"(([A-Za-z_-]*(token|secret|password|authorization)\w*\s*[=:]\s*)(Bearer\s+)?[^\s,;]+)",
      std::regex::icase | std::regex::optimize);
  static const std::regex digits(R"(\b[0-9A-Fa-f]{32,}\b)", std::regex::optimize);
  return std::regex_replace(std::regex_replace(line, named, "$1(hidden)"), digits, "(hidden)");
}

CLI::App* add_report_command(CLI::App& app, ReportCommand& command) {
  CLI::App* report = app.add_subcommand(
      "report",
      "print what a bug report needs of this node, without secrets; also where no daemon "
      "answers");
  report->fallthrough();
  report
      ->add_option("--config", command.config_file,
                   "the daemon's configuration file (default: what it was started with)")
      ->type_name(kFileValue)
      ->check(CLI::ExistingFile);
  report
      ->add_option("--log-file", command.log_file,
                   "the daemon's log (default: its standard error if that is a file, else the "
                   "journal)")
      ->type_name(kFileValue)
      ->check(CLI::ExistingFile);
  report->add_option("--lines", command.log_lines, "how many of the log's last lines to print")
      ->check(is_integer(0, 10'000))
      ->capture_default_str();
  add_format_options(*report, command.as_json);
  return report;
}

Result<CommandOutput> run_report(const DaemonSource& daemon, const ReportCommand& command) {
  const auto path = daemon.socket("report");
  if (!path) return path.status();
  const auto process = process_behind(*path);
  const auto json = query_status(*path, kReportTimeoutMs);
  SectionsJson report;
  report["time"] = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  report["versions"] = report_versions();
  report["daemon"] = daemon_section(*path, process, json);
  report["machine"] = report_machine();
  report["limits"] = report_limits(process);
  report["sysctls"] = report_sysctls();
  report["interfaces"] = report_interfaces();
  report["environment"] = report_environment();
  report["configuration"] = report_configuration(process, command);
  SectionsJson log = report_log(process, command);
  std::string status_text = "nothing, because no daemon answers\n";
  report["status"] = nullptr;
  if (json) {
    report["status"] = SectionsJson::parse(*json, nullptr, false);
    const auto status = parse_status(*json);
    if (!status) return status.status();
    status_text = render_status(*status);
    report["versions"]["braidd"] = status->version;
    report["versions"]["transport"] = status->transport;
  }
  report["log"] = std::move(log);
  for (auto& [name, section] : report.items()) {
    if (section.is_object() && name != "status") drop_empty(section);
  }
  if (command.as_json) {
    return CommandOutput{report.dump(2, ' ', false, SectionsJson::error_handler_t::replace) + '\n',
                         {}};
  }
  std::string text = fmt::format("braid: report of {}\n\n", plain(report["time"]));
  for (const auto& [name, section] : report.items()) {
    if (name == "status") {
      text += fmt::format("== status\n{}\n", status_text);
    } else if (name != "time") {
      text += section_text(name, section);
    }
  }
  return CommandOutput{std::move(text), {}};
}

}  // namespace braid
