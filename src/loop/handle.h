// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <uv.h>

namespace braid {

// Owner of one uv handle of type `UvHandle` (uv_timer_t, uv_poll_t, …). libuv may touch a handle
// until its close callback has run, so the handle lives on the heap and is freed there; the owner
// may go at any time, on the loop's thread. After close() no callback reaches the owner.
template <typename UvHandle>
class Handle {
 public:
  Handle() : handle_(new UvHandle{}) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { close(); }

  UvHandle* get() { return handle_; }
  const UvHandle* get() const { return handle_; }
  uv_handle_t* base() { return reinterpret_cast<uv_handle_t*>(handle_); }
  bool is_open() const { return handle_ != nullptr; }

  // Must be set after the uv_*_init call succeeded; until then the handle is simply freed.
  void set_initialised() { initialised_ = true; }

  void close() {
    if (handle_ == nullptr) return;
    if (initialised_) {
      uv_close(base(), [](uv_handle_t* handle) { delete reinterpret_cast<UvHandle*>(handle); });
    } else {
      delete handle_;
    }
    handle_ = nullptr;
  }

 private:
  UvHandle* handle_;
  bool initialised_ = false;
};

}  // namespace braid
