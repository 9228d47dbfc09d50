// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string_view>

#include <unistd.h>

#include "functions.h"

namespace fake_cuda {
namespace {

constexpr std::string_view kPrefix = "FAKE_CUDA_";

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view right) {
  std::fprintf(stderr, "fake CUDA: %.*s%.*s='%.*s': right is %.*s\n",
               static_cast<int>(kPrefix.size()), kPrefix.data(), static_cast<int>(name.size()),
               name.data(), static_cast<int>(value.size()), value.data(),
               static_cast<int>(right.size()), right.data());
  std::abort();
}

struct Setting {
  std::string_view name, value;

  template <typename Number>
  Number number(Number least, Number most, const char* right) const {
    Number result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size() || !(result >= least) ||
        !(result <= most)) {
      refuse(name, value, right);
    }
    return result;
  }

  bool flag(std::string_view yes, std::string_view no) const {
    if (value != yes && value != no) {
      refuse(name, value, std::string(yes) + " or " + std::string(no));
    }
    return value == yes;
  }

  std::vector<std::string_view> parts(std::string_view text, char separator) const {
    std::vector<std::string_view> found;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(separator, at), text.size());
      found.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return found;
  }

  std::string function(std::string_view text) const {
    if (!is_function(text)) {
      refuse(name, value, "a function of the library, as in cuMemAlloc or cuMemAlloc_v2");
    }
    return std::string(text);
  }

  Failure failure(std::string_view text) const {
    const auto fields = parts(text, ':');
    if (fields.size() < 2 || fields.size() > 3) {
      refuse(name, value, "FUNCTION:CALL or FUNCTION:CALL:ERROR, as in cuMemAlloc:2:2");
    }
    Failure result{function(fields[0]), 0, CUDA_ERROR_UNKNOWN};
    result.call =
        Setting{name, fields[1]}.number<std::uint64_t>(1, UINT64_MAX, "a call's number, from 1");
    if (fields.size() == 3) {
      result.error = static_cast<CUresult>(
          Setting{name, fields[2]}.number<int>(1, 999, "a CUresult from 1 to 999"));
    }
    return result;
  }
};

Frees frees_of(const Setting& one) {
  if (one.value == "waits") return Frees::kWait;
  if (one.value == "locks") return Frees::kLock;
  if (one.value == "now") return Frees::kNow;
  refuse(one.name, one.value, "waits, locks or now");
}

using Reader = std::function<void(const Setting&, Settings&)>;

const std::map<std::string_view, Reader>& readers() {
  static const std::map<std::string_view, Reader> kReaders = {
      {"UNIFIED", [](auto& one, auto& to) { to.unified = one.flag("1", "0"); }},
      {"QUEUES",
       [](auto& one, auto& to) { to.queues = one.template number<std::size_t>(1, 64, "1 to 64"); }},
      {"DEPTH",
       [](auto& one, auto& to) {
         to.depth = one.template number<std::size_t>(1, 65536, "1 to 65536");
       }},
      {"FREE", [](auto& one, auto& to) { to.frees = frees_of(one); }},
      {"COPY_GB_S",
       [](auto& one, auto& to) {
         to.copy_gb_s = one.template number<double>(0.001, 1000, "0.001 to 1000");
       }},
      {"DRIFT",
       [](auto& one, auto& to) {
         to.drift = one.template number<std::uint64_t>(0, UINT64_MAX, "a number");
       }},
      {"FAIL",
       [](auto& one, auto& to) {
         for (const auto text : one.parts(one.value, ',')) to.failures.push_back(one.failure(text));
       }},
      {"MISSING",
       [](auto& one, auto& to) {
         for (const auto text : one.parts(one.value, ',')) to.missing.push_back(one.function(text));
       }},
      {"VERSION",
       [](auto& one, auto& to) {
         to.version = one.template number<int>(11000, 99000, "11000 to 99000");
       }},
      {"DEVICES",
       [](auto& one, auto& to) { to.devices = one.template number<int>(0, 16, "0 to 16"); }},
      {"WORDS", [](auto& one, auto& to) { to.words = one.flag("yes", "no"); }},
      {"REGISTER_MAX_MIB",
       [](auto& one, auto& to) {
         to.register_max_mib =
             one.template number<std::size_t>(0, std::size_t{1} << 30, "a number of MiB");
       }},
      {"REPORT", [](auto& one, auto& to) { to.report = one.value; }},
  };
  return kReaders;
}

Settings read_environment() {
  Settings result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with(kPrefix)) {
      continue;
    }
    const std::size_t equals = std::min(text.find('='), text.size());
    const Setting one{text.substr(kPrefix.size(), equals - kPrefix.size()),
                      text.substr(std::min(equals + 1, text.size()))};
    const auto reader = readers().find(one.name);
    if (reader == readers().end()) {
      refuse(one.name, one.value, "one of the settings in tests/fake_cuda/settings.h");
    }
    reader->second(one, result);
  }
  return result;
}

}  // namespace

const Settings& settings() {
  static const Settings* const kSettings =
      new Settings(read_environment());  // queues use it until the very end
  return *kSettings;
}

}  // namespace fake_cuda
