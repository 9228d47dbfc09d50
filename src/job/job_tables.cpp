// SPDX-License-Identifier: Apache-2.0
#include "job/job_tables.h"

#include <utility>

#include "messages/control_messages.h"
#include "messages/rank_message.h"

namespace braid {
namespace {

std::unique_ptr<OperationTable> make_operations(const JobServices& services,
                                                const Membership& membership,
                                                const std::shared_ptr<ResultMemory>& memory,
                                                const std::vector<Session*>& sessions,
                                                const JobTableHooks& hooks) {
  return std::make_unique<OperationTable>(
      JobOnNode{membership.name, membership.key, membership.ring, membership.local_ranks}, memory,
      OperationServices{services.engines,
                        hooks.observer,
                        services.counters,
                        {sessions.begin(), sessions.end()},
                        [&services, &membership](uint32_t place, const OperationKey& key,
                                                 const Signature& signature) {
                          auto message = make_operation_ready(key, signature);
                          return services.control_plane.send(membership.ring->members[place],
                                                             message);
                        },
                        [&reach = hooks.reach] { return reach.reach_all(); },
                        hooks.check,
                        hooks.on_operation,
                        hooks.numbers,
                        services.engines.timeline(),
                        [&services] { return services.clock.now_ns(); }});
}

std::unique_ptr<MessageTable> make_messages(const JobServices& services,
                                            const Membership& membership,
                                            const std::shared_ptr<ResultMemory>& memory,
                                            const std::vector<Session*>& sessions,
                                            const JobTableHooks& hooks,
                                            OperationTable& operations) {
  return std::make_unique<MessageTable>(
      operations.job(), memory,
      MessageServices{
          services.engines,
          operations,
          {sessions.begin(), sessions.end()},
          [&services, &membership](uint32_t place, const MessageOffer& offer) {
            auto message = make_message_offered(membership.key, offer);
            return services.control_plane.send(membership.ring->members[place], message);
          },
          [&services, &membership](uint32_t place, const MessageName& name) {
            auto message = make_message_accepted(membership.key, name);
            return services.control_plane.send(membership.ring->members[place], message);
          },
          [&reach = hooks.reach](uint32_t place) { return reach.reach(place); },
          [&membership](uint32_t place) { return membership.nodes[place].peer.name; },
          [&services, &membership, &coordinator = hooks.coordinator] {
            auto message = make_leavers_awaited(membership.key);
            return services.control_plane.send(coordinator.id, message);
          },
          hooks.check,
          hooks.numbers,
          services.engines.timeline(),
          [&services] { return services.clock.now_ns(); }});
}

}  // namespace

Result<JobTables> make_tables(const JobServices& services, const Membership& membership,
                              const std::vector<Session*>& sessions, const JobTableHooks& hooks) {
  std::vector<std::shared_ptr<SharedMemory>> arenas;
  for (const Session* session : sessions)
    arenas.insert(arenas.end(), session->arenas()->begin(), session->arenas()->end());
  auto created = ResultMemory::create(services.worker, membership.name, services.result_bytes_max,
                                      std::move(arenas));
  if (!created) return created.status();
  JobTables tables;
  tables.memory = std::move(created).value();
  const std::shared_ptr<ResultMemory>& memory = tables.memory;
  tables.operations = make_operations(services, membership, memory, sessions, hooks);
  tables.messages =
      make_messages(services, membership, memory, sessions, hooks, *tables.operations);
  return tables;
}

}  // namespace braid
