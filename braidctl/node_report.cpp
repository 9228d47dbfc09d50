// SPDX-License-Identifier: Apache-2.0
#include "braidctl/node_report.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/version.h"
#include "config/config_keys.h"
#include "config/environment.h"
#include "config/load.h"
#include "config/network.h"

namespace braid {
namespace {

using ReportJson = nlohmann::ordered_json;

// Those on which flows, shared memory and descriptors depend.
constexpr std::array kSysctls = {
    "fs.file-max",
    "fs.nr_open",
    "kernel.pid_max",
    "kernel.yama.ptrace_scope",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_retries2",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "vm.max_map_count",
    "vm.overcommit_memory",
};
constexpr std::array<std::string_view, 5> kEnvironments = {"BRAID_", "BRAIDD_", "UCX_", "NCCL_",
                                                           "CUDA_VISIBLE_DEVICES"};
constexpr size_t kReadBytesMax = 1 << 20;  // of a file of the kernel's

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_to_read(const std::string& path) { return {std::fopen(path.c_str(), "re"), std::fclose}; }

// All that can be read of the file; empty: nothing can. Files of /proc have no size.
std::string bytes_of_file(const std::string& path) {
  std::string bytes;
  const File file = open_to_read(path);
  if (file == nullptr) return bytes;
  std::array<char, 4096> piece{};
  for (size_t got = 1; got > 0 && bytes.size() < kReadBytesMax;) {
    got = std::fread(piece.data(), 1, piece.size(), file.get());
    bytes.append(piece.data(), got);
  }
  return bytes;
}

// Without the blanks at its end.
std::string text_of_file(const std::string& path) {
  std::string text = bytes_of_file(path);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.pop_back();
  return text;
}

std::vector<std::string> lines_of_text(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

// Words that each end with a zero: a command line, an environment.
std::vector<std::string> words_of_file(const std::string& path) {
  std::istringstream stream(bytes_of_file(path));
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word, '\0');) words.push_back(std::move(word));
  return words;
}

std::string file_of_process(pid_t process, std::string_view name) {
  return fmt::format("/proc/{}/{}", process, name);
}

// Words with one blank between them.
std::string one_blank_each(const std::string& text) {
  std::istringstream stream(text);
  std::string words;
  for (std::string word; stream >> word;) words += words.empty() ? word : ' ' + word;
  return words;
}

// "key: value" or "key=value" in a file of such lines.
std::string value_in_file(const std::string& path, std::string_view key) {
  for (const std::string& line : lines_of_text(text_of_file(path))) {
    if (!line.starts_with(key)) continue;
    std::string value = line.substr(key.size());
    std::erase(value, '"');
    return one_blank_each(value);
  }
  return {};
}

// How the daemon was started.
struct Invocation {
  std::optional<std::string> config_file;
  std::vector<std::string> settings;
  std::vector<std::string> environment;
};

Invocation invocation_of(pid_t daemon) {
  Invocation invocation;
  const std::vector<std::string> words = words_of_file(file_of_process(daemon, "cmdline"));
  for (size_t i = 1; i < words.size(); ++i) {
    const auto value_of = [&](const std::string& option) -> std::optional<std::string> {
      if (words[i] == option && i + 1 < words.size()) return words[++i];
      if (words[i].starts_with(option + '=')) return words[i].substr(option.size() + 1);
      return std::nullopt;
    };
    if (auto file = value_of("--config")) {
      invocation.config_file = std::move(file);
    } else if (auto setting = value_of("--set")) {
      invocation.settings.push_back(std::move(*setting));
    }
  }
  const std::vector<std::string> all = words_of_file(file_of_process(daemon, "environ"));
  std::vector<const char*> pointers;
  pointers.reserve(all.size() + 1);
  for (const std::string& one : all) pointers.push_back(one.c_str());
  pointers.push_back(nullptr);
  invocation.environment = select_environment(pointers.data());
  return invocation;
}

// Empty: nothing comes.
std::vector<std::string> last_lines_of(std::FILE* stream, size_t lines_max) {
  std::deque<std::string> lines;
  std::string line;
  for (int next = std::fgetc(stream); next != EOF; next = std::fgetc(stream)) {
    if (next != '\n') {
      line += static_cast<char>(next);
      continue;
    }
    lines.push_back(std::exchange(line, {}));
    if (lines.size() > lines_max) lines.pop_front();
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return {lines.begin(), lines.end()};
}

// journalctl has 10 s.
std::vector<std::string> journal_lines(std::optional<pid_t> daemon, uint32_t lines) {
  const std::string whose =
      daemon ? fmt::format("_PID={}", *daemon) : std::string("-u braidd.service");
  const std::string command = fmt::format(
      "timeout 10 journalctl {} -n {} --no-pager -q -o short-iso 2>/dev/null", whose, lines);
  const File pipe(::popen(command.c_str(), "r"), ::pclose);
  return pipe == nullptr ? std::vector<std::string>() : last_lines_of(pipe.get(), lines);
}

std::vector<std::string> file_lines(const std::string& path, uint32_t lines) {
  const File file = open_to_read(path);
  return file == nullptr ? std::vector<std::string>() : last_lines_of(file.get(), lines);
}

// The file that the daemon's standard error is; empty: it is none, or this user may not see it.
std::string error_file_of(pid_t daemon) {
  const std::string link = file_of_process(daemon, "fd/2");
  struct stat info {};
  if (::stat(link.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  std::array<char, PATH_MAX> path{};
  const ssize_t bytes = ::readlink(link.c_str(), path.data(), path.size());
  return bytes > 0 ? std::string(path.data(), static_cast<size_t>(bytes)) : std::string();
}

}  // namespace

std::optional<pid_t> process_behind(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(address.sun_path)) return std::nullopt;
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0)
    return std::nullopt;
  return peer.pid;
}

ReportJson report_versions() {
  ReportJson versions;
  versions["braidctl"] = kBraidVersion;
  utsname kernel{};
  if (::uname(&kernel) == 0)
    versions["kernel"] = fmt::format("{} {} {}", kernel.sysname, kernel.release, kernel.machine);
  versions["system"] = value_in_file("/etc/os-release", "PRETTY_NAME=");
  return versions;
}

ReportJson report_machine() {
  ReportJson machine;
  machine["cores"] = std::thread::hardware_concurrency();
  machine["memory"] = value_in_file("/proc/meminfo", "MemTotal:");
  machine["memory_available"] = value_in_file("/proc/meminfo", "MemAvailable:");
  machine["shared_memory"] = value_in_file("/proc/meminfo", "Shmem:");
  machine["load"] = text_of_file("/proc/loadavg");
  machine["memory_max_of_service"] =
      text_of_file("/sys/fs/cgroup/system.slice/braidd.service/memory.max");
  machine["huge_pages_of_shared_memory"] =
      text_of_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  return machine;
}

ReportJson report_limits(std::optional<pid_t> daemon) {
  ReportJson limits;
  limits["of"] = daemon ? fmt::format("braidd (process {})", *daemon) : "this process";
  const std::string path = daemon ? file_of_process(*daemon, "limits") : "/proc/self/limits";
  for (const char* limit : {"Max locked memory", "Max open files", "Max processes", "Max file size",
                            "Max address space"})
    limits[limit] = value_in_file(path, limit);
  return limits;
}

ReportJson report_sysctls() {
  ReportJson sysctls = ReportJson::object();
  for (const std::string name : kSysctls) {
    std::string path = "/proc/sys/" + name;
    std::ranges::replace(path, '.', '/');
    std::string value = text_of_file(path);
    std::ranges::replace(value, '\t', ' ');
    sysctls[name] = value;
  }
  return sysctls;
}

ReportJson report_interfaces() {
  ReportJson interfaces = ReportJson::object();
  const auto network = list_network();
  if (!network) return interfaces;
  for (const NetworkInterface& one : network->interfaces) {
    const std::string folder = "/sys/class/net/" + one.name;
    const char* state = !one.is_up ? "down" : one.has_carrier ? "up" : "no carrier";
    const std::string addresses = fmt::format("{}", fmt::join(one.addresses, " "));
    std::string text = fmt::format("{}, {}, MTU {}", addresses.empty() ? "-" : addresses, state,
                                   text_of_file(folder + "/mtu"));
    const std::string speed = text_of_file(folder + "/speed");
    if (!speed.empty() && speed != "-1") text += fmt::format(", {} Mbit/s", speed);
    if (one.name == network->default_route) text += ", default route";
    interfaces[one.name] = std::move(text);
  }
  return interfaces;
}

ReportJson report_environment() {
  std::map<std::string, std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = without_secrets(*variable);
    const bool is_ours = std::ranges::any_of(
        kEnvironments, [&](std::string_view prefix) { return text.starts_with(prefix); });
    const size_t equals = text.find('=');
    if (is_ours && equals != std::string::npos)
      found[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return ReportJson(found);
}

ReportJson report_configuration(std::optional<pid_t> daemon, const ReportCommand& command) {
  Invocation invocation;
  if (daemon) invocation = invocation_of(*daemon);
  if (!command.config_file.empty()) invocation.config_file = command.config_file;
  if (!invocation.config_file) invocation.config_file = find_default_config_file();
  const LoadedConfig loaded =
      load_config(invocation.config_file, invocation.settings, invocation.environment);
  ReportJson configuration;
  configuration["file"] = invocation.config_file.value_or("none");
  for (const ConfigKey& key : config_keys()) {
    const auto origin = loaded.origins.find(key.name);
    if (origin == loaded.origins.end()) continue;
    configuration[std::string(key.name)] =
        fmt::format("{} ({})", format_config_value(key, loaded.config), origin->second);
  }
  if (!loaded.is_ok()) configuration["mistakes"] = loaded.errors;
  return configuration;
}

ReportJson report_log(std::optional<pid_t> daemon, const ReportCommand& command) {
  std::string source = command.log_file;
  if (source.empty() && daemon) source = error_file_of(*daemon);
  std::vector<std::string> lines;
  if (source.empty()) {
    source = "journal";
    lines = journal_lines(daemon, command.log_lines);
  } else {
    lines = file_lines(source, command.log_lines);
  }
  for (std::string& line : lines) line = without_secrets(line);
  if (lines.empty()) {
    source += ": nothing there that this user may read; --log-file FILE names another";
  }
  return {{"source", source}, {"lines", lines}};
}

}  // namespace braid
