// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "planner/json_input.h"
#include "tune/knowledge.h"

namespace braid {
namespace {

using nlohmann::json;

constexpr size_t kHashDigits = 16;

Result<JsonEntry> member_of(const JsonEntry& object, const char* key) {
  if (!object.value.contains(key)) {
    return make_status(StatusCode::InvalidArgument, "{}: {}.{} is missing", object.file,
                       object.where, key);
  }
  return JsonEntry{object.value[key], object.file, fmt::format("{}.{}", object.where, key)};
}

template <typename Integer>
Status read_count(const JsonEntry& object, const char* key, uint64_t min, Integer& out) {
  const auto member = member_of(object, key);
  if (!member) return member.status();
  constexpr uint64_t kMax = std::numeric_limits<Integer>::max();
  const auto value = member->integer(min, kMax, fmt::format("an integer from {} to {}", min, kMax));
  if (value) out = static_cast<Integer>(*value);
  return value.status();
}

Status read_positive(const JsonEntry& object, const char* key, double& out) {
  constexpr std::string_view kRight = "a number above 0";
  const auto member = member_of(object, key);
  if (!member) return member.status();
  const auto value = member->number(kRight);
  if (!value) return value.status();
  if (*value <= 0) return member->error("is not positive", kRight);
  out = *value;
  return Status::ok();
}

Status read_hash(const JsonEntry& object, const char* key, uint64_t& out) {
  constexpr std::string_view kRight = "16 hexadecimal digits, in lower case";
  const auto member = member_of(object, key);
  if (!member) return member.status();
  const auto digits = member->text(kRight);
  if (!digits) return digits.status();
  if (digits->size() != kHashDigits ||
      digits->find_first_not_of("0123456789abcdef") != std::string::npos) {
    return member->error("is no hash", kRight);
  }
  out = std::stoull(*digits, nullptr, 16);
  return Status::ok();
}

Status read_values(const JsonEntry& object, const char* key, NamedValues& out) {
  constexpr std::string_view kRight = "an object of 1 to 16 integers";
  const auto member = member_of(object, key);
  if (!member) return member.status();
  const json& values = member->value;
  if (!values.is_object()) return member->error("is no object", kRight);
  if (values.empty()) return member->error("is empty", kRight);
  if (values.size() > SearchSpace::kParametersMax) return member->error("is too large", kRight);
  for (const auto& value : values.items()) {
    BRAID_RETURN_IF_ERROR(read_count(*member, value.key().c_str(), 1, out[value.key()]));
  }
  return Status::ok();
}

Result<KnowledgeEntry> parse_entry(const JsonEntry& object) {
  if (!object.value.is_object()) return object.error("is no object", "{…}");
  BRAID_RETURN_IF_ERROR(
      check_keys(object.value, object.file, object.where + ".",
                 {"tensors_hash", "bytes", "tensors", "nodes", "ranks_per_node", "rails", "cores",
                  "values", "gain", "seconds", "trials", "unix_seconds"}));
  KnowledgeEntry entry;
  BRAID_RETURN_IF_ERROR(read_hash(object, "tensors_hash", entry.key.tensors_hash));
  BRAID_RETURN_IF_ERROR(read_count(object, "bytes", 1, entry.key.bytes));
  BRAID_RETURN_IF_ERROR(read_count(object, "tensors", 1, entry.key.tensors));
  BRAID_RETURN_IF_ERROR(read_count(object, "nodes", 1, entry.key.nodes));
  BRAID_RETURN_IF_ERROR(read_count(object, "ranks_per_node", 1, entry.key.ranks_per_node));
  BRAID_RETURN_IF_ERROR(read_count(object, "rails", 1, entry.key.rails));
  BRAID_RETURN_IF_ERROR(read_count(object, "cores", 1, entry.key.cores));
  BRAID_RETURN_IF_ERROR(read_values(object, "values", entry.values));
  BRAID_RETURN_IF_ERROR(read_positive(object, "gain", entry.gain));
  BRAID_RETURN_IF_ERROR(read_positive(object, "seconds", entry.seconds));
  BRAID_RETURN_IF_ERROR(read_count(object, "trials", 0, entry.trials));
  BRAID_RETURN_IF_ERROR(read_count(object, "unix_seconds", 0, entry.unix_seconds));
  return entry;
}

}  // namespace

Result<Knowledge> parse_knowledge(std::string_view text, std::string_view file) {
  const auto document = parse_json_object(text, file);
  if (!document) return document.status();
  const JsonEntry whole{*document, file, "the document"};
  uint32_t version = 0;
  BRAID_RETURN_IF_ERROR(read_count(whole, "version", 0, version));
  if (version != Knowledge::kVersion) {
    return make_status(StatusCode::InvalidArgument, "{}: version {}; known is {}", file, version,
                       Knowledge::kVersion);
  }
  BRAID_RETURN_IF_ERROR(check_keys(*document, file, "", {"version", "entries"}));
  const auto entries = member_of(whole, "entries");
  if (!entries) return entries.status();
  if (!entries->value.is_array() || entries->value.size() > Knowledge::kEntriesMax) {
    return entries->error("does not fit",
                          fmt::format("a list of up to {}", Knowledge::kEntriesMax));
  }
  Knowledge knowledge;
  for (size_t i = 0; i < entries->value.size(); ++i) {
    const JsonEntry object{entries->value[i], file, fmt::format("entries[{}]", i)};
    auto entry = parse_entry(object);
    if (!entry) return entry.status();
    knowledge.add(std::move(entry).value());
    if (knowledge.entries().size() != i + 1)
      return object.error("has a key that stands twice", "one entry per key");
  }
  return knowledge;
}

std::string to_json(const Knowledge& knowledge) {
  nlohmann::ordered_json document;
  document["version"] = Knowledge::kVersion;
  document["entries"] = nlohmann::ordered_json::array();
  for (const KnowledgeEntry& entry : knowledge.entries()) {
    nlohmann::ordered_json object;
    object["tensors_hash"] = fmt::format("{:016x}", entry.key.tensors_hash);
    object["bytes"] = entry.key.bytes;
    object["tensors"] = entry.key.tensors;
    object["nodes"] = entry.key.nodes;
    object["ranks_per_node"] = entry.key.ranks_per_node;
    object["rails"] = entry.key.rails;
    object["cores"] = entry.key.cores;
    object["values"] = entry.values;
    object["gain"] = entry.gain;
    object["seconds"] = entry.seconds;
    object["trials"] = entry.trials;
    object["unix_seconds"] = entry.unix_seconds;
    document["entries"].push_back(std::move(object));
  }
  return document.dump(2) + "\n";
}

}  // namespace braid
