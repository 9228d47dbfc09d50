// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_reader.h"

#include <algorithm>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "config/config_keys.h"

namespace braid {
namespace {

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
      report(key, name, fmt::format("is {}; write its keys below it, indented", kind_of(value)));
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
    errors.push_back(fmt::format("{}:{}: is not YAML: {}", file, error.mark.line + 1, error.msg));
  } catch (const std::exception& error) {
    errors.push_back(fmt::format("{}: is not YAML: {}", file, error.what()));
  }
}

}  // namespace braid
