// SPDX-License-Identifier: Apache-2.0
#include "tune/search_space.h"

#include <cmath>
#include <limits>
#include <set>

#include "base/hash.h"

namespace braid {
namespace {

double log_of(uint64_t value) { return std::log(static_cast<double>(value)); }

Status check_parameter(const SearchSpace::Parameter& parameter) {
  const auto wrong = [&](std::string_view what) {
    return make_status(StatusCode::InvalidArgument, "parameter '{}': {}", parameter.name, what);
  };
  if (parameter.name.empty()) return wrong("has no name");
  if (parameter.values.empty()) return wrong("has no values");
  if (parameter.values.size() > SearchSpace::kValuesMax) return wrong("has more than 64 values");
  if (parameter.values.front() == 0) return wrong("has the value 0; values are from 1");
  for (size_t i = 1; i < parameter.values.size(); ++i) {
    if (parameter.values[i] <= parameter.values[i - 1]) return wrong("its values do not ascend");
  }
  return Status::ok();
}

// The index among ascending values; the lower one of two that are equally far.
size_t nearest_index(const std::vector<uint64_t>& values, uint64_t wanted) {
  const auto distance = [&](size_t i) { return std::abs(log_of(values[i]) - log_of(wanted)); };
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    if (distance(i) < distance(best)) best = i;
  }
  return best;
}

}  // namespace

size_t SettingHash::operator()(const Setting& setting) const {
  uint64_t hash = 0;
  for (const uint8_t index : setting.indexes) hash = mix64(hash + index + 1);
  return hash;
}

SearchSpace::SearchSpace(std::vector<Parameter> parameters, Rule rule, uint64_t size)
    : parameters_(std::move(parameters)), rule_(std::move(rule)), size_(size) {}

Result<SearchSpace> SearchSpace::create(std::vector<Parameter> parameters, Rule rule) {
  if (parameters.empty() || parameters.size() > kParametersMax) {
    return make_status(StatusCode::InvalidArgument, "{} parameters; right are 1 to {}",
                       parameters.size(), kParametersMax);
  }
  uint64_t size = 1;
  std::set<std::string> names;
  for (const Parameter& parameter : parameters) {
    BRAID_RETURN_IF_ERROR(check_parameter(parameter));
    if (!names.insert(parameter.name).second) {
      return make_status(StatusCode::InvalidArgument, "parameter '{}' stands twice",
                         parameter.name);
    }
    size *= parameter.values.size();
    if (size > kSettingsMax) {
      return make_status(StatusCode::InvalidArgument,
                         "parameter '{}' makes it more than {} settings", parameter.name,
                         kSettingsMax);
    }
  }
  SearchSpace space(std::move(parameters), std::move(rule), size);
  for (uint64_t number = 0; number < size; ++number) {
    if (space.allows(space.at(number))) return space;
  }
  return make_status(StatusCode::InvalidArgument, "the rule allows none of {} settings", size);
}

bool SearchSpace::contains(const Setting& setting) const {
  if (setting.indexes.size() != parameters_.size()) return false;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (setting.indexes[i] >= parameters_[i].values.size()) return false;
  }
  return true;
}

bool SearchSpace::allows(const Setting& setting) const {
  if (!contains(setting)) return false;
  if (!rule_) return true;
  std::vector<uint64_t> values;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    values.push_back(parameters_[i].values[setting.indexes[i]]);
  }
  return rule_(values);
}

Setting SearchSpace::nearest(const NamedValues& values, const Setting& otherwise) const {
  BRAID_ASSERT(contains(otherwise), "a setting of another space");
  Setting setting = otherwise;
  std::vector<uint64_t> wanted;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto found = values.find(parameters_[i].name);
    if (found != values.end()) {
      wanted.push_back(std::max<uint64_t>(found->second, 1));
      setting.indexes[i] = static_cast<uint8_t>(nearest_index(parameters_[i].values, wanted[i]));
    } else {
      wanted.push_back(parameters_[i].values[otherwise.indexes[i]]);
    }
  }
  return allows(setting) ? setting : nearest_allowed(wanted);
}

Setting SearchSpace::nearest_allowed(const std::vector<uint64_t>& wanted) const {
  Setting best;
  double least = std::numeric_limits<double>::infinity();
  for (uint64_t number = 0; number < size_; ++number) {
    const Setting setting = at(number);
    double distance = 0;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const double ratio = log_of(parameters_[i].values[setting.indexes[i]]) - log_of(wanted[i]);
      distance += ratio * ratio;
    }
    if (distance < least && allows(setting)) {
      least = distance;
      best = setting;
    }
  }
  return best;
}

NamedValues SearchSpace::values(const Setting& setting) const {
  BRAID_ASSERT(contains(setting), "a setting of another space");
  NamedValues values;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    values[parameters_[i].name] = parameters_[i].values[setting.indexes[i]];
  }
  return values;
}

Setting SearchSpace::at(uint64_t number) const {
  BRAID_ASSERT(number < size_, "no setting has this number");
  Setting setting;
  setting.indexes.resize(parameters_.size());
  for (size_t i = parameters_.size(); i > 0; --i) {
    const uint64_t values = parameters_[i - 1].values.size();
    setting.indexes[i - 1] = static_cast<uint8_t>(number % values);
    number /= values;
  }
  return setting;
}

std::vector<double> SearchSpace::coordinates(const Setting& setting) const {
  std::vector<double> out;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::vector<uint64_t>& values = parameters_[i].values;
    if (values.size() == 1) continue;
    const double low = log_of(values.front());
    out.push_back((log_of(values[setting.indexes[i]]) - low) / (log_of(values.back()) - low));
  }
  return out;
}

}  // namespace braid
