// SPDX-License-Identifier: Apache-2.0
#include "job/job_flows.h"

namespace braid {

void JobFlows::plan(const TransferSettings& settings) {
  planned_ = {settings.streams, {settings.flows, settings.window_bytes, membership_.weight}};
  limit();
}

void JobFlows::use_few(bool few) {
  are_few_ = few;
  limit();
}

void JobFlows::limit() {
  JobShare share = planned_;
  if (are_few_ && share.link.flows == 0) share.link.flows = services_.rails;
  services_.engines.limit_job(membership_.key, share);
}

}  // namespace braid
