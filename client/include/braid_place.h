/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement: which rank computes which piece of a step's work that does not depend on the batch,
 * such as the inverse of a Kronecker factor (K-FAC), or one matrix's step of Muon or Shampoo. All
 * ranks need all results: an item either has an owner, which computes it and spreads the result, or
 * everybody computes it. docs/second-order.md says how owners are chosen.
 *
 * Part of libbraid; errors and struct_size are as in braid.h. It needs no job and no daemon, and
 * may be called from any thread. The same input gives the same placement on every rank. Since
 * 0.1.1.
 */
#ifndef BRAID_PLACE_H_
#define BRAID_PLACE_H_

#include <braid.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The owner of an item that everybody computes. */
#define BRAID_EVERYBODY UINT32_MAX

typedef struct braid_place_item {
  size_t struct_size;
  const char* id;        /**< a name that no other item has */
  const uint64_t* shape; /**< of the result: rows, then what together are columns; each from 1 */
  size_t dimensions;     /**< of the shape, 1 … 8 */
  double cost_seconds;   /**< to compute it, on any rank */
  uint64_t bytes;        /**< of the result, as it is spread */
} braid_place_item;

typedef struct braid_place_options {
  size_t struct_size;
  uint32_t ranks;   /**< 1 … 65536 */
  const char* rule; /**< "best" (NULL), "exact", "lpt", "lbp", "lbp:d", "lbp:d2", "lbp:t",
                       "round-robin", "block", "megatron", or "kaisa:F" */
  /** All ranks share one link, on which a result takes startup + bytes * seconds_per_byte. 0 and 0:
   * spreading costs nothing. */
  double startup_seconds;
  double seconds_per_byte;
} braid_place_options;

typedef struct braid_placement {
  size_t struct_size; /**< set by the caller */
  /** When the last computation and the last spreading end. A rank computes first the items that it
   * owns, in the order of `order`, then those that everybody computes. */
  double makespan_seconds;
  double bound_seconds; /**< no placement has a smaller makespan */
  uint32_t is_optimal;  /**< 1: no placement is better */
  uint32_t order_count; /**< of items with an owner */
} braid_placement;

/** Where each of `item_count` items, 1 … 100,000, goes. `owners` has room for item_count ranks or
 * BRAID_EVERYBODY; `order` too, and gets the order_count items that have owners, by their place in
 * `items`, in the order in which their results are spread; `loads` has room for options->ranks
 * numbers, the seconds that each rank computes. `order` and `loads` may be NULL.
 *
 * "best" takes some tens of milliseconds for 1,000 items on 256 ranks. BRAID_ERROR_INVALID_ARGUMENT
 * names the item, and says what would be right. */
BRAID_API int braid_place(const braid_place_options* options, const braid_place_item* items,
                          size_t item_count, uint32_t* owners, uint32_t* order, double* loads,
                          braid_placement* placement);

#ifdef __cplusplus
}
#endif

#endif
