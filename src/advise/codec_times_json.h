// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "advise/measure_codec.h"
#include "base/status.h"

namespace braid {

// What `braid-bench codecs --json` prints: one object per line, {"codec", "bytes",
// "encoded_bytes", "encode": {"gb_per_second"}, "encode_with_memory": …, "decode": …,
// "decode_and_add": …}, and, where sums are encoded by themselves, "encode_sum" and "decode_sum".
// Other keys are passed over; empty lines, too. Errors begin with `file` and the number of the
// line. A codec has the name that to_string() gives its spec.
Result<std::vector<CodecTimes>> parse_codec_times(std::string_view text, std::string_view file);
Result<std::vector<CodecTimes>> load_codec_times(const std::string& path);

}  // namespace braid
