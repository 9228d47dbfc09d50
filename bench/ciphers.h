// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace braid::bench {

struct CiphersOptions {
  uint64_t bytes = 16'000'000;                           // of a pass, at least
  std::vector<uint64_t> sizes = {1024, 16'384, 65'536};  // of a record
  uint32_t repeats = 7;
  bool as_json = false;
};

// Seconds of one core for one pass over `bytes`.
struct CipherTimes {
  uint64_t record_bytes = 0;
  uint64_t bytes = 0;
  double seal = 0;
  double open = 0;
  double hmac = 0;  // what authenticates without encryption
};

// One line, without a line end.
std::string ciphers_heading();
std::string ciphers_row(const CipherTimes& times);
std::string ciphers_json(const CipherTimes& times);

// What encryption costs: rates of records (RecordCipher) on one core.
Status run_ciphers(const CiphersOptions& options);

}  // namespace braid::bench
