// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace braid {

// For people: "12 B", "1.0 KiB", "98.4 MiB", "51.2 GiB". JSON has exact bytes.
std::string format_amount(uint64_t bytes);
std::string format_amount(double bytes);

}  // namespace braid
