// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace braid {

// Two names of one FNV-1a hash.
inline constexpr const char* kOneName = "8yn0iYCKYHlIj4-BwPqk";
inline constexpr const char* kAnother = "GReLUrM4wMqfg9yzV3KQ";

}  // namespace braid
