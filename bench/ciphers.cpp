// SPDX-License-Identifier: Apache-2.0
#include "bench/ciphers.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "advise/measure_codec.h"
#include "base/hmac.h"
#include "base/record_cipher.h"

namespace braid::bench {
namespace {

constexpr uint64_t kRecordBytesMax = 1ull << 30;

double gigabits_per_second(uint64_t bytes, double seconds) {
  return seconds > 0 ? 8 * static_cast<double>(bytes) / seconds / 1e9 : 0;
}

class CiphersBench {
 public:
  CiphersBench(uint64_t record_bytes, const CiphersOptions& options)
      : record_bytes_(record_bytes),
        records_((options.bytes + record_bytes - 1) / record_bytes),
        timer_{thread_cpu_clock, options.repeats},
        plain_(record_bytes, uint8_t{0x5a}),
        sealed_(records_ * record_bytes),
        tags_(records_),
        opened_(record_bytes) {}

  Result<CipherTimes> run() {
    CipherTimes times{record_bytes_, records_ * record_bytes_};
    Status status;
    const auto timed = [&](Status (CiphersBench::*pass)()) {
      return timer_.fastest_seconds([&] {
        if (Status done = (this->*pass)(); !done) status = done;
      });
    };
    times.seal = timed(&CiphersBench::seal_all);
    times.open = timed(&CiphersBench::open_all);
    times.hmac = timed(&CiphersBench::hash_all);
    if (!status) return status;
    return times;
  }

 private:
  std::span<uint8_t> sealed(uint64_t record) {
    return std::span(sealed_).subspan(record * record_bytes_, record_bytes_);
  }

  Status seal_all() {
    RecordCipher cipher(key_);
    const std::span<const uint8_t> part = plain_;
    for (uint64_t record = 0; record < records_; ++record)
      BRAID_RETURN_IF_ERROR(cipher.seal({}, std::span(&part, 1), sealed(record), tags_[record]));
    return Status::ok();
  }

  // What seal_all() has made.
  Status open_all() {
    RecordCipher cipher(key_);
    for (uint64_t record = 0; record < records_; ++record)
      BRAID_RETURN_IF_ERROR(cipher.open({}, sealed(record), tags_[record], opened_));
    return Status::ok();
  }

  Status hash_all() {
    HmacSha256 hmac(key_);
    for (uint64_t record = 0; record < records_; ++record) {
      const Sha256Digest digest = hmac.digest({sealed(record)});
      std::copy_n(digest.begin(), tags_[record].size(), tags_[record].begin());
    }
    return Status::ok();
  }

  const uint64_t record_bytes_;
  const uint64_t records_;
  const PassTimer timer_;
  const Sha256Digest key_{1};
  std::vector<uint8_t> plain_;
  std::vector<uint8_t> sealed_;
  std::vector<std::array<uint8_t, RecordCipher::kTagBytes>> tags_;
  std::vector<uint8_t> opened_;
};

}  // namespace

std::string ciphers_heading() {
  return fmt::format(
      "Gbit/s of one core, AES-256-GCM beside HMAC-SHA-256\n{:>12} {:>8} {:>8} {:>8}",
      "record bytes", "seal", "open", "HMAC");
}

std::string ciphers_row(const CipherTimes& times) {
  return fmt::format("{:>12} {:>8.1f} {:>8.1f} {:>8.1f}", times.record_bytes,
                     gigabits_per_second(times.bytes, times.seal),
                     gigabits_per_second(times.bytes, times.open),
                     gigabits_per_second(times.bytes, times.hmac));
}

std::string ciphers_json(const CipherTimes& times) {
  return nlohmann::json{{"record_bytes", times.record_bytes},
                        {"bytes", times.bytes},
                        {"seal_gbit_per_second", gigabits_per_second(times.bytes, times.seal)},
                        {"open_gbit_per_second", gigabits_per_second(times.bytes, times.open)},
                        {"hmac_gbit_per_second", gigabits_per_second(times.bytes, times.hmac)}}
      .dump();
}

Status run_ciphers(const CiphersOptions& options) {
  if (!options.as_json) std::printf("%s\n", ciphers_heading().c_str());
  for (const uint64_t size : options.sizes) {
    if (size == 0 || size > kRecordBytesMax) {
      return make_status(StatusCode::InvalidArgument,
                         "--sizes: a record of {} bytes does not fit; right is 1 to {}", size,
                         kRecordBytesMax);
    }
    const auto times = CiphersBench(size, options).run();
    if (!times) return times.status();
    std::printf("%s\n", (options.as_json ? ciphers_json(*times) : ciphers_row(*times)).c_str());
    std::fflush(stdout);
  }
  return Status::ok();
}

}  // namespace braid::bench
