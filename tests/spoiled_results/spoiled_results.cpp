// SPDX-License-Identifier: Apache-2.0
// braid_result and braid_result_of_rank of a libbraid that spoils results: the last byte of each
// one of $SPOILED_BYTES bytes is another one.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <braid.h>
#include <dlfcn.h>

namespace {

template <typename Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

// `*data` is read-only, so what is spoiled is a copy, which lasts until the next one.
int spoiled(int error, const void** data, const size_t* bytes) {
  static thread_local std::string copy;
  const char* wanted = std::getenv("SPOILED_BYTES");
  if (error != BRAID_OK || wanted == nullptr || std::to_string(*bytes) != wanted) return error;
  copy.assign(static_cast<const char*>(*data), *bytes);
  copy.back() = static_cast<char>(copy.back() + 1);
  *data = copy.data();
  return error;
}

}  // namespace

int braid_result(braid_job* job, braid_ticket ticket, const void** data, size_t* bytes) {
  return spoiled(next(&braid_result, "braid_result")(job, ticket, data, bytes), data, bytes);
}

int braid_result_of_rank(braid_job* job, braid_ticket ticket, uint32_t rank, const void** data,
                         size_t* bytes) {
  const auto real = next(&braid_result_of_rank, "braid_result_of_rank");
  return spoiled(real(job, ticket, rank, data, bytes), data, bytes);
}
