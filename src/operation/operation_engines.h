// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/operation.h"

namespace braid {

// Where operations run, as the table that starts them sees it: EnginePool.
class OperationEngines {
 public:
  virtual ~OperationEngines() = default;
  // False: too many operations wait at the engines' doors.
  virtual bool start(Operation operation) = 0;
  virtual bool go(const OperationKey& key) = 0;
};

// Who is told of a job's operations when all I/O loops have said so; see Engine::Events.
class OperationEvents {
 public:
  virtual ~OperationEvents() = default;
  virtual void on_done(const OperationKey& key) = 0;
  virtual void on_retired(const OperationKey& key) = 0;
};

}  // namespace braid
