/* SPDX-License-Identifier: Apache-2.0
 *
 * Placed work, seen: what a trainer tells its daemon of work that one rank does for all, such as
 * the inverses of K-FAC (see braid_place.h). `braidctl trace` then shows when each rank computed
 * which item and what it waited for, `braidctl explain` names a rank that the others wait for, and
 * the daemon's metrics have the loads. Nothing else depends on it: what is not told is not seen.
 *
 * Part of libbraid; errors and struct_size are as in braid.h. Since 0.1.1.
 */
#ifndef BRAID_WORK_H_
#define BRAID_WORK_H_

#include <braid.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A piece of the work. Numbers are seconds; 0: not known. */
typedef struct braid_work_item {
  size_t struct_size;
  const char* name;     /**< "layer4.A", 1 to 255 bytes */
  uint32_t owner;       /**< the rank that computes it, or BRAID_EVERYBODY */
  double seconds;       /**< that this rank needs for it; 0: others compute it */
  double least_seconds; /**< the shortest that any rank has needed */
} braid_work_item;

/** This rank has computed an item, or has waited for its owner's result. Times are nanoseconds of
 * CLOCK_MONOTONIC, and not in the future. */
typedef struct braid_work_span {
  size_t struct_size;
  uint64_t begin_ns;
  uint64_t end_ns;
  uint32_t item;    /**< its place in braid_work.items */
  uint32_t is_wait; /**< 1: it has waited; 0: it has computed */
} braid_work_span;

/** What this rank tells of one work. An update computes all items once. Numbers are seconds of an
 * update, as the latest ones were, from 0 to 1e6; 0: not known. */
typedef struct braid_work {
  size_t struct_size;
  const char* name;             /**< "inverses"; 1 to 64 bytes. A rank has at most 8 works */
  const braid_work_item* items; /**< that it computes, or that spans name */
  size_t item_count;            /**< at most 1024 */
  const braid_work_span* spans; /**< since it told last; NULL: none */
  size_t span_count;            /**< at most 4096 */
  uint64_t updates;        /**< so far; 0: only spans are told, and all that follows is left out */
  double interval_seconds; /**< from the begin of an update to the next one's */
  double seconds;          /**< that this rank computes */
  double wait_seconds;     /**< that it waits for what others compute */
  double input_wait_seconds; /**< that it waits for what its items are computed of */
  double planned_seconds;    /**< that it was to compute, by the latest placement */
  double makespan_seconds;   /**< of that placement, as braid_placement has it */
  double bound_seconds;      /**< the same */
} braid_work;

/** Tells the daemon, which keeps the latest numbers, and spans for about as long as other parts of
 * a timeline. Never blocks. What cannot be told now, because the daemon does not listen or is older
 * than this call, is lost, which is no error.
 *
 * It costs some tens of microseconds: tell each update of some milliseconds, and if there are more
 * than ten in a second, several together. BRAID_ERROR_INVALID_ARGUMENT says what is wrong. */
BRAID_API int braid_tell_work(braid_job* job, const braid_work* work);

#ifdef __cplusplus
}
#endif

#endif
