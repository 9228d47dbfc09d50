// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace braid {

// A JSON document that somebody wrote: one object and nothing after it. Errors begin with `file`
// and say where. Beyond what the grammar forbids (NaN, Infinity, numbers that no double holds), a
// key that stands twice is refused: which of the two was meant nobody can tell.
Result<nlohmann::json> parse_json_object(std::string_view text, std::string_view file);

// For messages: the value as it stands in the document, shortened.
std::string shown(const nlohmann::json& value);

// Entries of a document. `where` names the entry: "tb[3]"; `right` says what would be right.
struct JsonEntry {
  const nlohmann::json& value;
  std::string_view file;
  std::string where;

  Status error(std::string_view what, std::string_view right) const;
  Result<double> non_negative(std::string_view right) const;
  Result<double> number(std::string_view right) const;
  Result<uint64_t> integer(uint64_t min, uint64_t max, std::string_view right) const;
  Result<std::string> text(std::string_view right) const;  // not empty
};

// Refuses keys of `object` that are neither in `known` nor begin with "_".
Status check_keys(const nlohmann::json& object, std::string_view file, std::string_view where,
                  std::initializer_list<std::string_view> known);

}  // namespace braid
