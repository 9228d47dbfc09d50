// SPDX-License-Identifier: Apache-2.0
#include "config/print.h"

#include <fmt/format.h>

#include "config/config_keys.h"

namespace braid {
namespace {

constexpr size_t kColumnsMax = 100;

// `text` as comment lines that fit the page.
void append_comment(std::string& out, std::string_view indent, std::string_view text) {
  std::string line;
  const auto flush = [&] {
    out += fmt::format("{}#{}\n", indent, line);
    line.clear();
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (!line.empty() && indent.size() + 1 + line.size() + 1 + end > kColumnsMax) flush();
    line += ' ';
    line += text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  flush();
}

// Texts are quoted always: nobody need know when YAML would take one for something else.
std::string yaml_value(const ConfigKey& key, const DaemonConfig& config) {
  std::string value = format_config_value(key, config);
  if (key.kind != ConfigKind::Text) return value;
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

const char* kind_name(ConfigKind kind) {
  switch (kind) {
    case ConfigKind::Text:
      return "text";
    case ConfigKind::Integer:
      return "integer";
    case ConfigKind::IntegerOrAuto:
      return "integer or auto";
    case ConfigKind::Bytes:
      return "size";
    case ConfigKind::BytesOrAuto:
      return "size or auto";
    case ConfigKind::List:
      return "list";
  }
  return "?";
}

// An example has what is documented.
std::string print_yaml(const DaemonConfig& config, bool is_example) {
  std::string out;
  for (const ConfigSection& section : config_sections()) {
    if (is_example && section.name == kDebugSection) continue;
    if (!out.empty()) out += '\n';
    append_comment(out, "", section.help);
    out += fmt::format("{}:\n", section.name);
    for (const ConfigKey& key : config_keys()) {
      if (key.section() != section.name) continue;
      append_comment(
          out, "  ",
          fmt::format("{} ({}: {}{})", key.help, kind_name(key.kind), format_config_range(key),
                      key.reloadable ? "; SIGHUP reloads it" : ""));
      out +=
          fmt::format("  {}{}: {}\n", is_example ? "#" : "", key.leaf(), yaml_value(key, config));
    }
  }
  return out;
}

}  // namespace

std::string print_config(const DaemonConfig& config) { return print_yaml(config, false); }

std::string print_example_config() {
  return "# Configuration of braidd. Every key is optional; what stands here are the defaults.\n"
         "# \"braidd --check-config\" finds mistakes; \"systemctl reload braidd\" applies what can "
         "be\n"
         "# applied to a running daemon, and the log says what needs a restart.\n\n" +
         print_yaml(DaemonConfig{}, true);
}

std::string print_config_markdown() {
  std::string out;
  const DaemonConfig defaults;
  for (const ConfigSection& section : config_sections()) {
    if (section.name == kDebugSection) continue;
    out += fmt::format("### {}\n\n{}\n\n", section.name, section.help);
    out += "| key | type | default | range | SIGHUP | meaning |\n|---|---|---|---|---|---|\n";
    for (const ConfigKey& key : config_keys()) {
      if (key.section() != section.name) continue;
      const std::string value = format_config_value(key, defaults);
      out += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", key.name, kind_name(key.kind),
                         value.empty() ? "(empty)" : fmt::format("`{}`", value),
                         format_config_range(key), key.reloadable ? "yes" : "no", key.help);
    }
    out += '\n';
  }
  return out;
}

}  // namespace braid
