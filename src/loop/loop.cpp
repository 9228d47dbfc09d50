// SPDX-License-Identifier: Apache-2.0
#include "loop/loop.h"

#include "loop/ended_threads.h"

namespace braid {

Result<std::unique_ptr<Loop>> Loop::create(std::string name) {
  std::unique_ptr<Loop> loop(new Loop(std::move(name)));
  if (const int error = uv_loop_init(&loop->loop_); error != 0) {
    return Status::from_uv(error, "cannot make an event loop");
  }
  loop->is_initialised_ = true;
  loop->stop_async_.get()->data = loop.get();
  const int error = uv_async_init(&loop->loop_, loop->stop_async_.get(),
                                  [](uv_async_t* async) { uv_stop(async->loop); });
  if (error != 0) return Status::from_uv(error, "cannot make an event loop's wake-up");
  loop->stop_async_.set_initialised();

  uv_check_init(&loop->loop_, loop->polled_check_.get());
  loop->polled_check_.set_initialised();
  loop->polled_check_.get()->data = loop.get();
  uv_check_start(loop->polled_check_.get(), [](uv_check_t* check) {
    static_cast<Loop*>(check->data)->watch_.on_polled(uv_now(check->loop));
  });
  uv_prepare_init(&loop->loop_, loop->deferred_prepare_.get());
  loop->deferred_prepare_.set_initialised();
  loop->deferred_prepare_.get()->data = loop.get();
  uv_prepare_start(loop->deferred_prepare_.get(), [](uv_prepare_t* prepare) {
    // The last one before the poll: who starts later comes earlier.
    auto* self = static_cast<Loop*>(prepare->data);
    self->run_deferred();
    ++self->rounds_;
    self->watch_.on_round_end();
    self->polling_.before_sleep(&self->loop_);
  });
  uv_idle_init(&loop->loop_, loop->deferred_idle_.get());
  loop->deferred_idle_.set_initialised();
  return loop;
}

Loop::~Loop() {
  if (!is_initialised_) return;
  run_deferred();
  stop_async_.close();
  polled_check_.close();
  deferred_prepare_.close();
  deferred_idle_.close();
  uv_run(&loop_, UV_RUN_DEFAULT);
  const int error = uv_loop_close(&loop_);
  BRAID_ASSERT(error == 0, "a handle outlived its loop");
  join_ended_threads();
}

void Loop::run() {
  thread_ = std::this_thread::get_id();
  watch_.begin();
  uv_run(&loop_, UV_RUN_DEFAULT);
  watch_.end();
  thread_ = {};
}

void Loop::stop() { uv_async_send(stop_async_.get()); }

void Loop::defer(std::function<void()> task) {
  BRAID_ASSERT_IN_LOOP(*this);
  if (deferred_.empty()) uv_idle_start(deferred_idle_.get(), [](uv_idle_t*) {});
  deferred_.push_back(std::move(task));
}

void Loop::run_deferred() {
  // A task may defer another one; that one has its turn in the next round.
  while (!deferred_.empty()) {
    std::vector<std::function<void()>> tasks = std::move(deferred_);
    deferred_.clear();
    for (auto& task : tasks) task();
  }
  if (deferred_idle_.is_open()) uv_idle_stop(deferred_idle_.get());
}

bool Loop::is_in_loop() const {
  return thread_ == std::thread::id{} || thread_ == std::this_thread::get_id();
}

}  // namespace braid
