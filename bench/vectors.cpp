// SPDX-License-Identifier: Apache-2.0
#include "bench/vectors.h"

#include <hwy/targets.h>

namespace braid::bench {

Status choose_vectors(const std::string& vectors) {
#if HWY_ARCH_X86
  if (vectors == "avx2") {
    hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
  } else if (vectors == "baseline") {
    hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL | HWY_AVX2 | HWY_SSE4 | HWY_SSSE3);
  }
#endif
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  if (vectors == "widest" || vectors == "avx2" || vectors == "baseline") return Status::ok();
  return make_status(StatusCode::InvalidArgument,
                     "--vectors: '{}': right is widest, avx2 or baseline", vectors);
}

}  // namespace braid::bench
