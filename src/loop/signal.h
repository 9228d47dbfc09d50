// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "loop/loop.h"

namespace braid {

// Calls back on the loop when the process gets the signal.
class Signal {
 public:
  Signal(Loop& loop, int number, std::function<void()> callback) : callback_(std::move(callback)) {
    uv_signal_init(loop.uv(), handle_.get());
    handle_.set_initialised();
    handle_.get()->data = this;
    uv_signal_start(
        handle_.get(),
        [](uv_signal_t* signal, int) { static_cast<Signal*>(signal->data)->callback_(); }, number);
  }

 private:
  std::function<void()> callback_;
  Handle<uv_signal_t> handle_;
};

}  // namespace braid
