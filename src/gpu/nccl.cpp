// SPDX-License-Identifier: Apache-2.0
#include "gpu/nccl.h"

#include <cstdlib>
#include <mutex>
#include <optional>

#include <dlfcn.h>

namespace braid {
namespace {

// ncclGetVersion's number; it has been made like this since 2.9.
std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

template <typename Function>
bool find_nccl_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Status lacks_nccl_function(const std::string& library, const char* function) {
  return make_status(StatusCode::Unavailable, "{} has no function {}: is it NCCL?", library,
                     function);
}

}  // namespace

Result<Nccl> Nccl::load(const std::string& library) {
  // What is in the process already by this name goes first, wherever it was loaded from (torch's,
  // from its own folder).
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char* reason = ::dlerror();
    return make_status(StatusCode::NotFound, "no NCCL: {}",
                       reason == nullptr ? library.c_str() : reason);
  }
  Nccl nccl;
  if (!find_nccl_function(loaded, "ncclGetVersion", nccl.GetVersion)) {
    return lacks_nccl_function(library, "ncclGetVersion");
  }
  // Before the other functions: an old library lacks some, and is to be called old.
  const NcclResult result = nccl.GetVersion(&nccl.version);
  if (result != NcclResult::Success) {
    return make_status(StatusCode::Unavailable, "{} does not say its version: ncclGetVersion: {}",
                       library, static_cast<int>(result));
  }
  if (nccl.version < kNcclLeastVersion) {
    // Before 2.9, 2.8.4 was 2804.
    const int version =
        nccl.version < 10000 ? nccl.version / 1000 * 10000 + nccl.version % 1000 : nccl.version;
    return make_status(StatusCode::Unavailable, "{} is NCCL {}; braid needs {} or a newer one",
                       library, nccl_version_text(version), nccl_version_text(kNcclLeastVersion));
  }
#define BRAID_NCCL_FIND(Returned, name, ...)                  \
  if (!find_nccl_function(loaded, "nccl" #name, nccl.name)) { \
    return lacks_nccl_function(library, "nccl" #name);        \
  }
  BRAID_NCCL_FUNCTIONS(BRAID_NCCL_FIND)
#undef BRAID_NCCL_FIND
  find_nccl_function(loaded, "ncclGetLastError", nccl.GetLastError);
  return nccl;
}

Result<const Nccl*> Nccl::get() {
  // Never destroyed: threads may still call it while the process ends.
  static auto* const mutex = new std::mutex;
  static auto* const found = new std::optional<Nccl>;
  const std::scoped_lock lock(*mutex);
  if (!found->has_value()) {
    const char* given = std::getenv("BRAID_NCCL_LIBRARY");
    auto loaded = load(given == nullptr || *given == '\0' ? kNcclLibrary : given);
    if (!loaded) return loaded.status();
    *found = *loaded;
  }
  return &**found;
}

std::string Nccl::version_text() const { return nccl_version_text(version); }

Status Nccl::check(NcclResult result, std::string_view function) const {
  if (result == NcclResult::Success) return {};
  const char* text = GetErrorString(result);
  std::string message =
      fmt::format("NCCL's {} failed: {} ({})", function, text == nullptr ? "no description" : text,
                  static_cast<int>(result));
  const char* last = GetLastError == nullptr ? nullptr : GetLastError(nullptr);
  if (last != nullptr && *last != '\0') {
    message += ": ";
    message += last;
    while (message.back() == '\n') message.pop_back();
  }
  return {StatusCode::Unavailable, std::move(message), static_cast<int>(result)};
}

}  // namespace braid
