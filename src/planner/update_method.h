// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace braid {

// How a step's gradients become new parameters, and when the nodes have to wait for each other.
//
//   Sync     the next step begins when all sums are in
//   Sharded  the owner of each gradient updates its parameters; the next forward pass waits, layer
//            by layer, for parameters (ZeRO: Rajbhandari et al., SC 2020)
//   OdSgd    the next step begins from a local update; the global one comes a step late (OD-SGD:
//            Xu et al., arXiv 2005.06728)
//   SsdSgd   as OdSgd; gradients are pushed in every step, parameters pulled in every K-th
//   (SSD-SGD:
//            Xu et al., arXiv 2012.05396)
//   CdSgd    as OdSgd; gradients are pushed as 2bit, in every K-th step in full (CD-SGD: Yu et al.,
//            ICPP 2021)
//   Acco     a step has half of a batch; its gradients, and the weights that they make, travel
//            behind the next half: an estimate after the first one, an update after the second one
//            (ACCO: Nabli et al., arXiv 2406.02613)
//   DiLoCo   H local steps, then one exchange of all parameters (Douillard et al., arXiv
//            2311.08105); by fragments, and behind further steps (Streaming DiLoCo, arXiv
//            2501.18512)
enum class UpdateKind : uint8_t { Sync, Sharded, OdSgd, SsdSgd, CdSgd, Acco, DiLoCo };

struct UpdateMethod {
  UpdateKind kind = UpdateKind::Sync;
  uint32_t period = 1;     // steps: K or H, 1 of the others
  uint32_t overlap = 0;    // DiLoCo: steps that an exchange may take; 0: the nodes wait for it
  uint32_t fragments = 1;  // DiLoCo: exchanged one after the other, spread over the period
  bool operator==(const UpdateMethod&) const = default;
};

// The most steps of a period.
inline constexpr uint32_t kUpdatePeriodMax = 10'000;

// Methods separated by commas, as users write them: "sync,ssd-sgd:4,diloco:8,overlap=2". Words such
// as "overlap=2" belong to the method before them. INVALID_ARGUMENT: says what would be right; also
// of a method that stands twice.
Result<std::vector<UpdateMethod>> parse_update_methods(std::string_view text);
// As parse_update_methods() reads it; parameters that have their defaults are left out.
std::string to_string(const UpdateMethod& method);
// "sync, sharded, …, ssd-sgd:K, …": all that there are.
std::string update_method_forms();

}  // namespace braid
