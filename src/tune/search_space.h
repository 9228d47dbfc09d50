// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace braid {

// One value of each parameter, by its place in that parameter's list. Means something together with
// its SearchSpace only.
struct Setting {
  std::vector<uint8_t> indexes;

  bool operator==(const Setting&) const = default;
  bool operator<(const Setting& other) const { return indexes < other.indexes; }
};

struct SettingHash {
  size_t operator()(const Setting& setting) const;
};

// "chunk_bytes" → 1048576. What daemons apply and files remember.
using NamedValues = std::map<std::string, uint64_t>;

// What the tuner may choose from: every parameter has a short list of values, and a rule says which
// combinations are allowed. Immutable; any thread, as far as the rule is.
class SearchSpace {
 public:
  static constexpr size_t kParametersMax = 16;
  static constexpr size_t kValuesMax = 64;           // of one parameter
  static constexpr uint64_t kSettingsMax = 1 << 21;  // allowed or not

  struct Parameter {
    std::string name;              // with its unit: "chunk_bytes"
    std::vector<uint64_t> values;  // ascending, from 1; a single one: the parameter is pinned
  };
  // Values in the order of the parameters. Always the same answer to the same values.
  using Rule = std::function<bool(std::span<const uint64_t> values)>;

  // Without a rule everything is allowed. Errors (InvalidArgument) name the parameter; it is also
  // one when the rule allows nothing.
  static Result<SearchSpace> create(std::vector<Parameter> parameters, Rule rule = {});

  const std::vector<Parameter>& parameters() const { return parameters_; }
  uint64_t size() const { return size_; }  // settings, allowed or not

  bool contains(const Setting& setting) const;  // has a place in each list
  bool allows(const Setting& setting) const;    // and the rule has nothing against it

  // The allowed setting whose values are nearest: least sum of squared log ratios, the lower one of
  // two equal ones. Parameters without a value in `values` stay as in `otherwise`; names that the
  // space does not know are passed over.
  Setting nearest(const NamedValues& values, const Setting& otherwise) const;
  NamedValues values(const Setting& setting) const;

  // All settings have numbers, in lexical order from 0 to size() − 1.
  Setting at(uint64_t number) const;
  // Where it lies: [0, 1] in each parameter that is not pinned, by the logarithm of its value.
  std::vector<double> coordinates(const Setting& setting) const;

 private:
  SearchSpace(std::vector<Parameter> parameters, Rule rule, uint64_t size);
  Setting nearest_allowed(const std::vector<uint64_t>& wanted) const;

  std::vector<Parameter> parameters_;
  Rule rule_;
  uint64_t size_;
};

}  // namespace braid
