// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "operation/operation_table.h"
#include "planning/plan_book.h"

namespace braid {

// Tells a job's plans what its operations do, when, and how much the network had carried then. A
// job without planned tensors pays nothing for it. Control loop only.
class PlanObserver final : public OperationObserver {
 public:
  // `check`: takes what the plans make of a result.
  // `carried`: EngineCounters::bytes_carried, of all jobs.
  PlanObserver(PlanBook& plans, const Clock& clock, std::function<uint64_t()> carried,
               std::function<void(const Status&)> check)
      : plans_(plans), clock_(clock), carried_(std::move(carried)), check_(std::move(check)) {}

  void on_start(const OperationKey& key, uint64_t result_bytes) override {
    if (!plans_.is_empty()) plans_.on_start(key, result_bytes);
  }
  void on_go(const OperationKey& key) override {
    if (!plans_.is_empty()) plans_.on_go(key, clock_.now_ns(), carried_());
  }
  void on_done(const OperationKey& key) override {
    if (!plans_.is_empty()) check_(plans_.on_done(key, clock_.now_ns(), carried_()));
  }
  void on_loss(const OperationKey& key, const CodecLoss& loss) override {
    check_(plans_.on_loss(key, loss));
  }

 private:
  PlanBook& plans_;
  const Clock& clock_;
  const std::function<uint64_t()> carried_;
  const std::function<void(const Status&)> check_;
};

}  // namespace braid
