// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "advise/advice.h"
#include "advise/bandwidth_sweep.h"
#include "planner/trace.h"

namespace braid {

// What `braidctl advise` prints.
struct RenderedAdvice {
  Trace trace;
  Advice advice;
  BandwidthSweep sweep;
  AdviceOptions options;
  std::string planner;
  std::string rates;              // where they come from
  double measured_bandwidth = 0;  // bits in a second
  double measured_seconds = 0;    // of a step without a codec; 0: not measured
  std::vector<std::string> warnings;

  const AdviceRow& plain() const { return advice.rows.front(); }
  const Trace::Tensor& tensor(uint32_t place) const {  // as plans count: the last layer is 0
    return trace.tensors[trace.tensors.size() - 1 - place];
  }
};

// A measured step that is far from the predicted one: then nor are codecs predicted well.
std::optional<std::string> misprediction_warning(const RenderedAdvice& report);

// Why it recommends what it does: one sentence.
std::string advice_reason(const RenderedAdvice& report);
// That one, and what else is worth knowing.
std::vector<std::string> advice_sentences(const RenderedAdvice& report);

// The steps by codec, the groups, then the sentences.
std::string advice_table(const RenderedAdvice& report);
// {"recommended", "reason", "rows": [{"codec", "step_seconds", "communication_seconds",
// "encode_seconds", "exposed_seconds", "wire_bytes", …}], "groups", …, "sweep":
// {"bits_per_second": […], "step_seconds": {codec: […], …}}}: docs/compression.md.
std::string advice_json(const RenderedAdvice& report);

// "4.8 Gbit/s"
std::string format_bandwidth(double bits_per_second);

}  // namespace braid
