// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <locale>
#include <sstream>
#include <string>

#include <braid.h>

#include "ipc/ipc_error.h"

namespace braid::client {

// The outcome of everything within libbraid; braid.h's functions turn it into a return value and
// the thread's message.
struct [[nodiscard]] Error {
  int code = BRAID_OK;
  std::string text;

  bool is_ok() const { return code == BRAID_OK; }
  explicit operator bool() const { return is_ok(); }  // as everywhere in braid: true is good
};

template <typename... Parts>
Error make_error(int code, const Parts&... parts) {
  std::ostringstream text;
  text.imbue(std::locale::classic());  // the process's own may put dots into numbers
  (text << ... << parts);
  return {code, text.str()};
}

// An error of the files shared with the daemon.
Error from_ipc(const IpcError& error);

// Keeps the text for braid_error_message() and gives the code.
int report(const Error& error) noexcept;
int report_out_of_memory() noexcept;
int report_bug(const char* what) noexcept;
const char* last_message() noexcept;

}  // namespace braid::client
