// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_reader.h"

#include <algorithm>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/printable.h"
#include "config/config_keys.h"

namespace braid {
namespace {

constexpr size_t kShownBytesMax = 80;  // of a line that is not YAML

const char* kind_of(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a map";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return "a single value";
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      return "nothing";
  }
  return "?";
}

// A section that is no map of keys.
std::string describe_section_value(const std::string& section, const YAML::Node& value) {
  const std::string text = value.IsScalar() ? value.Scalar() : "";
  const std::string leaf = text.substr(0, text.find(':'));
  const bool names_key = find_config_key(fmt::format("{}.{}", section, leaf)) != nullptr;
  if (names_key && leaf.size() < text.size()) {
    return fmt::format("is '{}'; write a blank behind the colon: \"{}: {}\"", text, leaf,
                       text.substr(leaf.size() + 1));
  }
  const std::string what = value.IsScalar() ? fmt::format("'{}'", text) : kind_of(value);
  if (names_key) return fmt::format("is {}; write \"{}: …\" below it, indented", what, leaf);
  return fmt::format("is {}; write its keys below it, indented: {}", what,
                     keys_of_section(section));
}

// The line of this number, from 1 on; empty: there is none.
std::string_view line_of(std::string_view text, int number) {
  for (int line = 1; line < number; ++line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// The first line, up to this one, that is indented with a tab: YAML allows none, and its parser
// says something else.
int find_tab(std::string_view text, int up_to) {
  for (int number = 1; number <= up_to; ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::string_view blanks = line.substr(0, line.find_first_not_of(" \t"));
    if (blanks.size() < line.size() && blanks.find('\t') != std::string_view::npos) return number;
    if (line.size() == text.size()) break;
    text.remove_prefix(line.size() + 1);
  }
  return 0;
}

// What the parser says it has met, and what to write instead.
std::string describe_syntax_error(std::string_view yaml, const std::string& file,
                                  const YAML::Exception& error) {
  const int number = error.mark.line + 1;
  if (const int tab = find_tab(yaml, number); tab > 0) {
    return fmt::format(
        "{}:{}: is not YAML: the line is indented with a tab; use blanks, the same "
        "number for all keys of a section",
        file, tab);
  }
  const std::string_view met = error.msg;
  const char* advice =
      "put a value that has other signs than letters, digits, '.', '/', '-' and '_' in quotes";
  if (met.find("sequence flow") != std::string_view::npos)
    advice = "a list that begins with [ ends with ]";
  if (met.find("map flow") != std::string_view::npos) advice = "what begins with { ends with }";
  if (met.find("map value") != std::string_view::npos) {
    advice =
        "write one \"key: value\" in a line, and indent all keys of a section by the same "
        "number of blanks";
  }
  const std::string line = printable(line_of(yaml, number), kShownBytesMax);
  if (line.find(": ::") != std::string::npos) advice = "put the address in quotes: \"::\"";
  return fmt::format("{}:{}: is not YAML ({}){}; {}", file, number, met,
                     line.empty() ? "" : fmt::format(", at '{}'", line), advice);
}

class YamlReader {
 public:
  YamlReader(const std::string& file, DaemonConfig& config, ConfigOrigins& origins,
             std::vector<std::string>& errors)
      : file_(file), config_(config), origins_(origins), errors_(errors) {}

  void read_document(const YAML::Node& root) {
    if (root.IsNull()) return;  // empty, or comments only
    if (!root.IsMap()) {
      report(root, "",
             fmt::format("the document is {}; write sections with keys, such as "
                         "\"log: {{level: debug}}\"",
                         kind_of(root)));
      return;
    }
    for_each_entry(root, "",
                   [this](const std::string& name, const YAML::Node& key, const YAML::Node& value) {
                     read_section(name, key, value);
                   });
  }

 private:
  // Calls visit(name, key, value) for each entry whose key is text and new.
  template <typename Visit>
  void for_each_entry(const YAML::Node& map, const std::string& prefix, Visit visit) {
    std::map<std::string, int> line_of_name;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) {
        report(entry.first, prefix,
               fmt::format("has {} as a key; use a name", kind_of(entry.first)));
        continue;
      }
      const std::string name = prefix.empty() ? entry.first.Scalar()
                                              : fmt::format("{}.{}", prefix, entry.first.Scalar());
      const int line = entry.first.Mark().line + 1;
      const auto [first, is_new] = line_of_name.emplace(name, line);
      if (!is_new) {
        report(entry.first, name,
               fmt::format("stands in line {} too; write it once", first->second));
        continue;
      }
      visit(name, entry.first, entry.second);
    }
  }

  void read_section(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    const auto sections = config_sections();
    const bool is_known = std::any_of(sections.begin(), sections.end(),
                                      [&](const auto& section) { return section.name == name; });
    if (!is_known) {
      if (find_config_key(name) != nullptr) {
        const size_t dot = name.find('.');
        report(key, name,
               fmt::format("is written with a dot; in a file write \"{}:\" and below it, indented, "
                           "\"{}: …\"",
                           name.substr(0, dot), name.substr(dot + 1)));
      } else {
        report(key, name, fmt::format("unknown key; {}", suggest_config_key(name)));
      }
      return;
    }
    if (value.IsNull()) return;  // all its keys are commented out
    if (!value.IsMap()) {
      report(key, name, describe_section_value(name, value));
      return;
    }
    for_each_entry(value, name,
                   [this](const std::string& dotted, const YAML::Node& leaf,
                          const YAML::Node& setting) { read_key(dotted, leaf, setting); });
  }

  void read_key(const std::string& name, const YAML::Node& leaf, const YAML::Node& value) {
    const ConfigKey* key = find_config_key(name);
    if (key == nullptr) {
      report(leaf, name, fmt::format("unknown key; {}", suggest_config_key(name)));
      return;
    }
    const Status status = set_value(*key, value);
    if (!status) {
      report(leaf, name, status.message());
      return;
    }
    origins_[key->name] = place(leaf, name);
  }

  Status set_value(const ConfigKey& key, const YAML::Node& value) {
    if (value.IsScalar()) return set_config_value(key, value.Scalar(), config_);
    if (value.IsSequence() && key.kind == ConfigKind::List) {
      std::vector<std::string> elements;
      for (const YAML::Node& element : value) {
        if (!element.IsScalar()) {
          return make_status(StatusCode::InvalidArgument, "has {} in its list; use {}",
                             kind_of(element), key.allowed);
        }
        elements.push_back(element.Scalar());
      }
      return set_config_list(key, std::move(elements), config_);
    }
    if (key.kind == ConfigKind::List) {
      return make_status(StatusCode::InvalidArgument,
                         "is {}; use {}, as a single value or as a list: [first, second]",
                         kind_of(value), key.allowed);
    }
    return make_status(StatusCode::InvalidArgument, "is {}; use {}", kind_of(value),
                       format_config_range(key));
  }

  std::string place(const YAML::Node& node, const std::string& name) const {
    const std::string line = fmt::format("{}:{}", file_, node.Mark().line + 1);
    return name.empty() ? line : fmt::format("{}: {}", line, name);
  }

  void report(const YAML::Node& node, const std::string& name, const std::string& message) {
    errors_.push_back(fmt::format("{}: {}", place(node, name), message));
  }

  const std::string& file_;
  DaemonConfig& config_;
  ConfigOrigins& origins_;
  std::vector<std::string>& errors_;
};

}  // namespace

void read_config_yaml(std::string_view yaml, const std::string& file, DaemonConfig& config,
                      ConfigOrigins& origins, std::vector<std::string>& errors) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(yaml));
    if (documents.size() > 1) {
      errors.push_back(fmt::format("{}:{}: there are {} documents; write one, without ---", file,
                                   documents[1].Mark().line + 1, documents.size()));
      return;
    }
    if (!documents.empty()) YamlReader(file, config, origins, errors).read_document(documents[0]);
  } catch (const YAML::Exception& error) {
    errors.push_back(describe_syntax_error(yaml, file, error));
  } catch (const std::exception& error) {
    errors.push_back(fmt::format("{}: is not YAML: {}", file, error.what()));
  }
}

}  // namespace braid
