// SPDX-License-Identifier: Apache-2.0
#include "bench/environment.h"

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <optional>

namespace braid::bench {
namespace {

constexpr uint32_t kWorldSizeMax = 65536;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<std::string> first_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto value = variable(name)) return value;
  }
  return std::nullopt;
}

Result<uint32_t> number(const char* name, const std::string& text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return make_status(StatusCode::InvalidArgument, "{}='{}' is not a whole number", name, text);
  }
  return value;
}

}  // namespace

Result<Environment> read_environment() {
  Environment environment;
  environment.job_name = variable("BRAID_JOB").value_or(environment.job_name);
  const auto rank = first_of({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  const auto world_size = first_of({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  const auto master = variable("MASTER_ADDR");
  if (!rank && !world_size && !master) return environment;
  if (!rank || !world_size || !master) {
    return make_status(
        StatusCode::InvalidArgument,
        "{} is not set; scripts/cluster and torchrun set RANK, WORLD_SIZE and MASTER_ADDR, mpirun "
        "needs -x MASTER_ADDR=NODE with rank 0's node; or set none of them for a job of one",
        !rank         ? "RANK"
        : !world_size ? "WORLD_SIZE"
                      : "MASTER_ADDR");
  }
  const auto rank_number = number("RANK", *rank);
  if (!rank_number) return rank_number.status();
  const auto size_number = number("WORLD_SIZE", *world_size);
  if (!size_number) return size_number.status();
  if (*size_number == 0 || *size_number > kWorldSizeMax || *rank_number >= *size_number) {
    return make_status(
        StatusCode::InvalidArgument,
        "RANK={} and WORLD_SIZE={} do not fit: use a world size of 1 to {} and a rank below it",
        *rank, *world_size, kWorldSizeMax);
  }
  environment.rank = *rank_number;
  environment.world_size = *size_number;
  environment.master_address = *master;
  return environment;
}

}  // namespace braid::bench
