// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "explain/explanation.h"

namespace braid {

std::string to_json(const Explanation& explanation) {
  using Json = nlohmann::ordered_json;
  Json findings = Json::array();
  for (const Finding& finding : explanation.findings) {
    findings.push_back({{"cause", to_string(finding.cause)},
                        {"text", finding.text},
                        {"advice", finding.advice},
                        {"seconds_per_step", finding.seconds_per_step},
                        {"node", finding.node.empty() ? Json() : Json(finding.node)},
                        {"rank", finding.rank ? Json(*finding.rank) : Json()}});
  }
  return Json({{"job", explanation.job},
               {"nodes", explanation.nodes},
               {"missing", explanation.missing},
               {"world_size", explanation.world_size},
               {"steps", explanation.steps},
               {"step_seconds", explanation.step_seconds},
               {"exposed_seconds", explanation.exposed_seconds},
               {"operations", explanation.operations},
               {"findings", std::move(findings)}})
      .dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace braid
