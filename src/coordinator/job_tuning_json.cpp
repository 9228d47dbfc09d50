// SPDX-License-Identifier: Apache-2.0
// What `braidctl tune` is told.
#include <nlohmann/json.hpp>

#include "coordinator/job_tuning.h"

namespace braid {

std::string JobTuning::to_json() const {
  using Json = nlohmann::ordered_json;
  static constexpr const char* kStates[] = {"waiting", "running", "running", "running", "over"};
  Json trials = Json::array();
  for (const Trial& trial : tuned_.trials) {
    trials.push_back({{"purpose", purpose_name(trial.purpose)},
                      {"searcher", trial.searcher},
                      {"steps", trial.steps},
                      {"seconds", trial.median_seconds},
                      {"values", space_.values(trial.setting)}});
  }
  Json space_json = Json::object();
  for (const auto& parameter : space_.parameters()) space_json[parameter.name] = parameter.values;
  Json known;
  if (found_) {
    known = {{"is_same_job", found_->is_same_job}, {"distance", found_->distance},
             {"gain", found_->entry.gain},         {"seconds", found_->entry.seconds},
             {"values", found_->entry.values},     {"unix_seconds", found_->entry.unix_seconds}};
  }
  return Json({{"set", fmt::format("{:016x}", task_.set.set)},
               {"tensors", task_.set.tensors},
               {"bytes", task_.set.bytes},
               {"number", task_.number},
               {"state", is_given_up_ ? "given up" : kStates[static_cast<size_t>(state_)]},
               {"reason", reason_},
               {"first_step", first_step_},
               {"last_step", last_step_},
               {"steps_measured", steps_measured_},
               {"noise", tuned_.noise},
               {"gain", tuned_.gain},
               {"winner", space_.values(tuned_.winner)},
               {"incumbent", space_.values(tuned_.incumbent)},
               {"known", std::move(known)},
               {"space", std::move(space_json)},
               {"trials", std::move(trials)}})
      .dump();
}

}  // namespace braid
