/* SPDX-License-Identifier: Apache-2.0
 *
 * libbraid: the way of a trainer into braidd, the gradient communication daemon of its node.
 *
 * A trainer opens a job (braid_open), registers its tensors (braid_register), submits one
 * collective per tensor and step (braid_submit), waits for it (braid_wait), reads the result
 * (braid_result or braid_copy_result), gives the result back (braid_release) and closes the job
 * (braid_close). client/examples/trainer.cpp shows all of it.
 *
 * Every function returns BRAID_OK or a braid_error; braid_error_message() then holds a sentence
 * that names what failed. Every wait has a deadline. All functions may be called from any thread at
 * any time, except that braid_close must be the last call on its job. A process that ends by
 * exit() or a return from main() leaves the jobs that it still has open, as braid_leave does; one
 * that ends by a signal or _exit() is a dead rank to the others. One process may hold several
 * jobs. A job does not survive fork(): in a child every call on it fails with
 * BRAID_ERROR_INVALID_ARGUMENT.
 */
#ifndef BRAID_H_
#define BRAID_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BRAID_API __attribute__((visibility("default")))

/** Errors. The numbers are part of the ABI. */
typedef enum braid_error {
  BRAID_OK = 0,
  BRAID_ERROR_INVALID_ARGUMENT = 1,  /**< the call or its arguments make no sense */
  BRAID_ERROR_NOT_FOUND = 2,         /**< no such tensor, ticket, file */
  BRAID_ERROR_ALREADY_EXISTS = 3,    /**< a rank or a tensor name given twice */
  BRAID_ERROR_PERMISSION_DENIED = 4, /**< the socket is not ours to open */
  BRAID_ERROR_UNAVAILABLE = 5,       /**< no daemon is listening, or it went away */
  BRAID_ERROR_DEADLINE_EXCEEDED =
      6, /**< the time given is over; the message says what was missing */
  BRAID_ERROR_RESOURCE_EXHAUSTED =
      7, /**< memory, descriptors, ring slots: the message names limit and knob */
  BRAID_ERROR_MISMATCH = 8,   /**< ranks disagree about a tensor, a step or the job */
  BRAID_ERROR_JOB_FAILED = 9, /**< another rank or node failed; the message names it */
  BRAID_ERROR_PROTOCOL = 10,  /**< bytes that make no sense, or versions that do not match */
  BRAID_ERROR_CANCELLED = 11, /**< the job was closed or the daemon is shutting down */
  BRAID_ERROR_INTERNAL = 12   /**< a bug in braid */
} braid_error;

/** Element types. 16-bit floats are added in 32 bits. A node rounds its sum to 16 bits once for
 * each part of another node that it adds (around the ring: once per hop), and in small all-reduces,
 * which every node sends to every other one, once for all parts. The sum of several ranks of one
 * node is rounded once when it is sent alone, and an average once more. */
typedef enum braid_dtype {
  BRAID_FLOAT32 = 0,
  BRAID_FLOAT64 = 1,
  BRAID_FLOAT16 = 2,
  BRAID_BFLOAT16 = 3,
  BRAID_INT32 = 4,
  BRAID_INT64 = 5,
  BRAID_UINT8 = 6
} braid_dtype;

typedef enum braid_reduction {
  BRAID_SUM = 0,
  BRAID_AVERAGE = 1, /**< sum, then divided by the world size (integers truncate toward zero) */
  BRAID_MIN = 2,
  BRAID_MAX = 3,
  BRAID_PRODUCT = 4
} braid_reduction;

/** Collectives, and what `count` of an operation means for each. */
typedef enum braid_collective {
  BRAID_ALL_REDUCE = 0, /**< count = elements of the tensor; the result has as many */
  BRAID_BROADCAST = 1,  /**< count = elements of the tensor; only the root's input is read */
  BRAID_ALL_GATHER =
      2, /**< count = elements that each rank gives; the result has world_size * count */
  BRAID_REDUCE_SCATTER =
      3,             /**< count = elements that each rank gets; the input has world_size * count */
  BRAID_BARRIER = 4, /**< no data: dtype, count and input are ignored */
  BRAID_GATHER = 5,  /**< count = elements that each rank gives; the root's result has world_size *
                        count, in rank order, the others' is empty. Since 0.1.1. */
  BRAID_SCATTER = 6, /**< count = elements that each rank gets; the root's input has world_size *
                        count, only that one is read. Since 0.1.1. */
  BRAID_ALL_TO_ALL = 7 /**< count = elements that each rank gives to each one; input and result have
                          world_size * count, in rank order; or see `input_splits`. Since 0.1.1. */
} braid_collective;

/** One opened job: this process's membership as one rank. */
typedef struct braid_job braid_job;

/** One accepted operation of one job. Never 0. */
typedef uint64_t braid_ticket;

/** `struct_size` of every options struct is its sizeof, by which a program and a libbraid of
 * different ages understand each other: fields are only ever added at the end, behind the padding
 * of the struct as it was, and 0 stands for what was before there was the field. Fields that the
 * program's struct lacks are taken for 0; of fields that libbraid lacks, one that is not 0 is an
 * error. */
typedef struct braid_job_options {
  size_t struct_size;
  const char* socket_path;    /**< NULL: $BRAID_SOCKET, else /run/braid/braidd.sock */
  const char* name;           /**< the same on all ranks, 1 to 255 bytes */
  uint32_t rank;              /**< 0 … world_size - 1 */
  uint32_t world_size;        /**< 1 … 65536 */
  const char* master_address; /**< host of the job's coordinator: the trainer's own MASTER_ADDR; or
                                 host:port, as braid_master() gives it for a daemon whose
                                 control.port is auto; an IPv6 address then has brackets */
  uint32_t timeout_ms;        /**< for opening, and the default for operations; 0: 300,000 */
  uint64_t arena_bytes; /**< the most that braid_allocate may hand out; 0: 16 GiB. The daemon is
                           given memory as it is needed, in pieces, up to its own limits. */
  const char* token;    /**< the job's secret, the same on all ranks, at most 255 bytes; NULL or "":
                           $BRAID_JOB_TOKEN, else none. Since 0.1.1. */
  uint64_t master_node; /**< as braid_master() gives it on rank 0: the job fails where another
                           daemon is found at master_address; 0: any will do. Since 0.1.1. */
} braid_job_options;

/** Where the daemons of other nodes reach this node's daemon, and its number: what rank 0 gives to
 * all ranks, its own included, as master_address and master_node, in the way that they learn the
 * job's name. So nothing depends on what a launcher takes for rank 0's address. A loopback address:
 * the daemon serves its own host only. Where its control.port is auto, ":port" follows, and an IPv6
 * address has brackets. `address`
 * is for `bytes` bytes; 256 always do. `socket_path`: as in braid_job_options; timeout_ms 0:
 * 10,000. BRAID_ERROR_NOT_FOUND: the daemon is older than this call. Since 0.1.1. */
BRAID_API int braid_master(const char* socket_path, uint32_t timeout_ms, char* address,
                           size_t bytes, uint64_t* node);

/** Joins the job and waits until all its ranks have. On success `*job` must be closed with
 * braid_close.
 *
 * A job is known by its name and its token together: who gives another token joins another job,
 * even under the same name. So choose 32 random bytes, written as text, on one rank, and give them
 * to the others in the way that they learn the job's name. Without a token those ranks belong
 * together that run as the same user: right on one node, but on several any process of that user
 * number, on any node, can take a rank. The ranks of one node always run as one user.
 *
 * $BRAID_JOB_WEIGHT, 1 to 100 and the same on all ranks, is the job's share of what
 * it has in common with other jobs on the network; without it, 1. */
BRAID_API int braid_open(const braid_job_options* options, braid_job** job);

/** braid_open in two parts, for a caller that has to look after something else while it waits (a
 * signal, another thread that says stop): braid_open_start returns at once, then braid_open_wait is
 * called until it sets `*done` to 1. It waits `timeout_ms` at most, and the first error ends the
 * attempt. Until the job is open, and after an error, braid_close is the only other function for
 * it: it gives the attempt up. One thread at a time. Since 0.1.1. */
BRAID_API int braid_open_start(const braid_job_options* options, braid_job** job);
BRAID_API int braid_open_wait(braid_job* job, uint32_t timeout_ms, int* done);

/** Leaves the job. Operations in flight end with BRAID_ERROR_CANCELLED; results become invalid;
 * `job` is freed. Takes 2 s at most. */
BRAID_API int braid_close(braid_job* job);

/** Leaves the job and frees nothing: for a process that ends while its threads may still be inside
 * calls on the job, which end with BRAID_ERROR_CANCELLED. What was submitted before counts for the
 * other ranks. If they wait for more, the job fails for them, with `reason` (a few words, or NULL)
 * in the text. If the last thing that this rank asked for was refused, the text says that as well.
 * Takes 2 s at most. braid_close may still follow. Since 0.1.1. */
BRAID_API int braid_leave(braid_job* job, const char* reason);

BRAID_API uint32_t braid_rank(const braid_job* job);
BRAID_API uint32_t braid_world_size(const braid_job* job);
/** How many nodes the ranks are on. 0: the daemon is older than this call and does not say, or the
 * job is not open yet. Since 0.1.1. */
BRAID_API uint32_t braid_nodes(const braid_job* job);

/** BRAID_OK while the job goes on, else what ended it, as every wait would say it: for a caller
 * that waits for another rank in some other way than by this library. Never blocks. Since 0.1.1. */
BRAID_API int braid_check(braid_job* job);

#define BRAID_NO_ORDER UINT32_MAX

typedef struct braid_tensor_options {
  size_t struct_size;
  const char* name;        /**< the same on all ranks, unique in the job, 1 to 1023 bytes */
  uint32_t dtype;          /**< a braid_dtype */
  uint64_t count;          /**< elements; 0 is possible, and 2^48 bytes of them, also of all planned
                              tensors of one registration together */
  uint32_t backward_order; /**< 0 = its gradient is ready first; BRAID_NO_ORDER: unknown */
  uint32_t dynamic;  /**< 1: dtype and count are given by each operation instead (an ordered stream
                        of collectives) */
  uint32_t planned;  /**< 1: one of a model's gradients, see braid_register. Not in the first
                        version. */
  const char* codec; /**< How it travels between nodes: a codec as docs/compression.md writes it,
                        "int8" or "topk:ratio=0.01"; NULL or "none": as it is. The same on all
                        ranks; of planned float32 tensors, which are summed or averaged. Since
                        0.1.1. */
  uint32_t state_slots; /**< 1 to 3: these are weights that the daemons update, and the owner of an
                           element keeps so many values for it: the weight, the momentum, Adam's
                           second moment. Of planned tensors of floats, and the same for all of a
                           registration. See braid_update. 0: plain gradients. Since 0.1.1. */
} braid_tensor_options;

/**
 * Registers `tensor_count` tensors; their handles go to `tensors`. Either all are registered or
 * none.
 *
 * Those with `planned` are the gradients of one model, and the daemon may merge neighbours among
 * them into one reduction, as its plan says. That is a promise: in each step the trainer submits
 * every one of them, each on its own, as an all-reduce with one and the same reduction, and waits
 * for none before it has submitted all.
 */
BRAID_API int braid_register(braid_job* job, const braid_tensor_options* options,
                             size_t tensor_count, uint32_t* tensors);

/** Takes all tensors of one braid_register out of the job again: `tensors` are their handles, as
 * they were given. Then they cost nothing any more, here or in the daemon, and no limit counts
 * them; what a codec or an owner keeps for them goes, too, when all ranks of the node have
 * unregistered them. Every rank does it when it submits none of them any more, each at its own
 * time.
 *
 * BRAID_ERROR_INVALID_ARGUMENT: a ticket of an operation of theirs was not released, or they are
 * not all tensors of one registration; then nothing has changed. A handle is not given again. A
 * name should not be used again in this job, and is refused for some time. Since 0.1.1. */
BRAID_API int braid_unregister(braid_job* job, const uint32_t* tensors, size_t tensor_count);

/** Memory inside an input arena, 64-byte aligned: submitting from it copies nothing. Freed by
 * braid_free or braid_close. It blocks, up to the timeout, only while the daemon is given another
 * arena. */
BRAID_API int braid_allocate(braid_job* job, size_t bytes, void** memory);
BRAID_API int braid_free(braid_job* job, void* memory);

/** What an all-reduce of a tensor with state_slots does. */
typedef enum braid_update_action {
  BRAID_UPDATE_APPLY = 0,   /**< the input is a gradient: it is reduced (sum or average), its owner
                               takes the optimizer's step, and the result are the new weights */
  BRAID_UPDATE_PUSH = 1,    /**< the same, and the result is empty: half the bytes on the wire */
  BRAID_UPDATE_LOAD = 2,    /**< the input are values of a slot, the same on all ranks; each owner
                               takes those of its own node, and the result are all owners' */
  BRAID_UPDATE_FETCH = 3,   /**< no input; the result are the values of a slot */
  BRAID_UPDATE_ESTIMATE = 4 /**< as APPLY, with the same result; owners keep the weights and the
                               state that they have */
} braid_update_action;

typedef enum braid_optimizer {
  BRAID_SGD = 0,  /**< with momentum, dampening, Nesterov's momentum, as torch.optim.SGD */
  BRAID_ADAM = 1, /**< as torch.optim.Adam; with BRAID_DECOUPLED_DECAY as torch.optim.AdamW */
  BRAID_LION = 2  /**< Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023;
                     with BRAID_DECOUPLED_DECAY only */
} braid_optimizer;

typedef enum braid_state_slot {
  BRAID_WEIGHTS = 0,
  BRAID_FIRST_MOMENT = 1, /**< SGD's and Lion's momentum, Adam's first moment */
  BRAID_SECOND_MOMENT = 2 /**< Adam */
} braid_state_slot;

typedef enum braid_state_bits {
  BRAID_ROUNDED = 0,   /**< values in the tensor's type */
  BRAID_HIGH_BITS = 1, /**< of 16-bit tensors, whose state is float32: the upper 16 bits of it */
  BRAID_LOW_BITS = 2   /**< the lower 16 bits */
} braid_state_bits;

#define BRAID_NESTEROV 1u        /**< SGD */
#define BRAID_DECOUPLED_DECAY 2u /**< weight decay beside the gradient, not in it */
#define BRAID_PULL_BFLOAT16                                                                   \
  4u /**< APPLY, ESTIMATE, float32: new weights travel rounded to bfloat16; the owner's state \
        stays exact */

/** One update of one tensor. All ranks must give the same numbers, or the job fails with
 * BRAID_ERROR_MISMATCH and both of them. The weights must be loaded (BRAID_UPDATE_LOAD) before
 * anything else. All tensors of a registration are submitted with one action in a step; what a step
 * pushes is in the weights that any later step gets. Since 0.1.1. */
typedef struct braid_update {
  size_t struct_size;
  uint32_t action;        /**< a braid_update_action */
  uint32_t optimizer;     /**< a braid_optimizer; APPLY, PUSH and ESTIMATE */
  uint32_t slot;          /**< a braid_state_slot; LOAD and FETCH */
  uint32_t bits;          /**< a braid_state_bits; LOAD and FETCH */
  uint32_t flags;         /**< BRAID_NESTEROV | … */
  uint64_t count;         /**< updates of this tensor, this one included: 1, 2, … (Adam's bias
                             correction; SGD's momentum begins with the gradient at 1) */
  double learning_rate;   /**< finite, 0 or more, as all that follow */
  double momentum;        /**< below 1; Adam and Lion: beta1 */
  double dampening;       /**< SGD, at most 1 */
  double second_momentum; /**< below 1; Adam and Lion: beta2 */
  double epsilon;         /**< Adam */
  double weight_decay;
} braid_update;

typedef struct braid_operation {
  size_t struct_size;
  uint32_t collective; /**< a braid_collective */
  uint32_t tensor;     /**< handle from braid_register */
  uint64_t step; /**< (tensor, step) names the operation on all ranks; the steps of one tensor grow,
                    up to 2^62 */
  uint32_t reduction;  /**< a braid_reduction; ignored where nothing is reduced */
  uint32_t root;       /**< rank, for BRAID_BROADCAST, BRAID_GATHER and BRAID_SCATTER */
  uint32_t dtype;      /**< dynamic tensors only */
  uint32_t timeout_ms; /**< 0: the job's */
  uint64_t count;      /**< dynamic tensors only; meaning depends on the collective */
  const void* input;   /**< in an arena: must stay unchanged until the operation is done; else it is
                          copied first */
  const uint64_t* input_splits;  /**< BRAID_ALL_TO_ALL with parts of different sizes: how many
                                    elements of `input` are for rank 0, 1, … (world_size numbers,
                                    read at once); `count` is ignored then. NULL: all parts have
                                    `count`. Since 0.1.1. */
  const uint64_t* output_splits; /**< likewise, how many elements of the result come from rank 0,
                                    1, …: on both or on none. What one rank gives to another must
                                    be what the other expects. Since 0.1.1. */
  const braid_update* update;    /**< of tensors with state_slots, read at once; NULL: none. Since
                                    0.1.1. */
} braid_operation;

/** How long operations may take that are submitted from now on and name no time of their own; 0: as
 * long as when the job was opened. For this rank only. Since 0.1.1. */
BRAID_API int braid_set_timeout(braid_job* job, uint32_t timeout_ms);

/** Gives `more_ms` beside that, or beside their own time, to the operations that are submitted from
 * now on until the first of them has ended. Calls add up. Since 0.1.1. */
BRAID_API int braid_extend_timeout(braid_job* job, uint32_t more_ms);

/** How long braid_submit, braid_submit_device and braid_allocate may wait for the daemon in one
 * call: for a caller that has to look after something else meanwhile (a signal). A call that has
 * waited so long fails with BRAID_ERROR_DEADLINE_EXCEEDED and has done nothing: it may be called
 * again, as long as braid_check says BRAID_OK. 0, as at first: as long as an operation may take.
 * braid_register and braid_unregister wait for their answer whatever is set here. Since 0.1.1. */
BRAID_API int braid_set_patience(braid_job* job, uint32_t patience_ms);

/** Hands one operation to the daemon and returns at once. It blocks, up to the timeout, only while
 * the ring is full, or while an input that is copied needs another arena. */
BRAID_API int braid_submit(braid_job* job, const braid_operation* operation, braid_ticket* ticket);

#define BRAID_ANY_RANK UINT32_MAX

/** One end of a message: bytes that one rank sends to one other rank. A receive gets the message
 * whose sender and tag are its own; what one rank sends with one tag is received in the order in
 * which it was sent, and other tags do not wait for it. Nothing is kept for a receive that has not
 * come: a send ends when its receiver has all bytes. Since 0.1.1. */
typedef struct braid_message {
  size_t struct_size;
  uint32_t peer; /**< the other rank, not this one; of a receive also BRAID_ANY_RANK: whichever
                    message with the tag comes first */
  uint32_t timeout_ms; /**< 0: the job's. At the deadline of a message the job fails, as at that of
                          a collective */
  uint64_t tag;        /**< 0 to 2^62 */
  uint64_t bytes;      /**< the same on both ends, or the job fails with both of them named */
  const void* data;    /**< braid_send: as `input` of braid_operation. braid_receive ignores it */
} braid_message;

/** Hands one end of a message to the daemon and returns at once, as braid_submit does, which may be
 * called in between at will. `ticket` is for braid_test, braid_wait, braid_result,
 * braid_copy_result, braid_take and braid_release; a send has no result. The message is no
 * collective: no other rank than these two takes part, and it may overtake operations. If a rank or
 * node dies, the job fails, as ever; the text also names the message that waited. Since 0.1.1.
 *
 * BRAID_ERROR_NOT_FOUND: the daemon is older than this call. */
BRAID_API int braid_send(braid_job* job, const braid_message* message, braid_ticket* ticket);
BRAID_API int braid_receive(braid_job* job, const braid_message* message, braid_ticket* ticket);

/** The rank whose message a receive has got. After its end. Since 0.1.1. */
BRAID_API int braid_source(braid_job* job, braid_ticket ticket, uint32_t* rank);

/** `*done` = 1 when the operation has ended; the return value is then its outcome. Never blocks. Of
 * braid_submit_device: when its results are in device memory; without BRAID_DEVICE_STREAM_WAITS,
 * until braid_stream_wait is called, when they are in host memory. */
BRAID_API int braid_test(braid_job* job, braid_ticket ticket, int* done);

/**
 * Waits for the operation's end as braid_test has it, at most `timeout_ms` (0: the operation's own
 * deadline, which the daemon enforces). Returns its outcome; BRAID_ERROR_DEADLINE_EXCEEDED with a
 * message that says "still in flight" when `timeout_ms` was the limit.
 */
BRAID_API int braid_wait(braid_job* job, braid_ticket ticket, uint32_t timeout_ms);

/** The result in shared memory, read-only, valid until braid_release. For all-gather use
 * braid_result_of_rank. */
BRAID_API int braid_result(braid_job* job, braid_ticket ticket, const void** data, size_t* bytes);

/** The block of an all-gather that `rank` gave. */
BRAID_API int braid_result_of_rank(braid_job* job, braid_ticket ticket, uint32_t rank,
                                   const void** data, size_t* bytes);

/** Copies the whole result (all-gather: in rank order) into `out`, which holds exactly `bytes`
 * bytes. */
BRAID_API int braid_copy_result(braid_job* job, braid_ticket ticket, void* out, size_t bytes);

/** Gives the result back. Every ticket that was waited for must be released, also failed ones.
 * Never blocks. */
BRAID_API int braid_release(braid_job* job, braid_ticket ticket);

/** braid_wait, braid_copy_result and braid_release in one call. After an error the ticket is still
 * the caller's: also after "still in flight", when it may be tried again. Since 0.1.1. */
BRAID_API int braid_take(braid_job* job, braid_ticket ticket, uint32_t timeout_ms, void* out,
                         size_t bytes);

/** How a job's operations on device memory are carried: all its ranks call it at the same point,
 * once, before their first braid_submit_device, and all get the same answer. `stream` is a CUstream
 * of this rank's GPU; NULL: that of the calling thread's context.
 *
 * `*levels` = 2: NCCL between the ranks of each node, and braid between the nodes, which then send
 * 1/ranks-of-a-node of the bytes each. So go all-reduces, reduce-scatters, all-gathers and
 * broadcasts of dynamic tensors with BRAID_DEVICE_STREAM_WAITS, from then on; other operations go
 * in one level. It needs two nodes or more with the same number of ranks, more than one, each with
 * a GPU of its own; ranks in the order of nodes; one NCCL (2.10 or newer) on all ranks, which is
 * the process' own or found as libnccl.so.2; and streams that can wait.
 * `*levels` = 1: braid alone. $BRAID_LEVELS=1 on any rank asks for it.
 * `*levels` = 0: some rank cannot give braid device memory: use host memory.
 *
 * `reason`, of `bytes` bytes, gets why it is not 2 (cut off where it does not fit; NULL: nobody
 * asks). It waits for all ranks; `timeout_ms` 0: as long as an operation. After an error (also a
 * rank that does not come) the job has failed. Since 0.1.1. */
BRAID_API int braid_open_levels(braid_job* job, void* stream, uint32_t timeout_ms, uint32_t* levels,
                                char* reason, size_t bytes);

#define BRAID_DEVICE_STREAM_WAITS                                                               \
  1u /**< results come into place by copies that are queued at once: braid_stream_wait does not \
        hold its caller. Of dynamic tensors. */

/** Where an operation finds and leaves its data if these are in the memory of a GPU (CUDA;
 * addresses are CUdeviceptr). All device memory of a job belongs to one CUDA context, the stream's.
 * Since 0.1.1. */
typedef struct braid_device_buffers {
  size_t struct_size;
  uint64_t input;                 /**< 0: this rank gives no data */
  uint64_t result;                /**< 0: this rank wants no result. It may be the input */
  const uint64_t* result_of_rank; /**< BRAID_ALL_GATHER into memory that lies apart: world_size
                                     addresses, in rank order; NULL: `result` has all blocks */
  void* stream; /**< a CUstream: the input is ready, and the result may be overwritten, behind what
                   is queued on it now */
  uint32_t flags; /**< BRAID_DEVICE_STREAM_WAITS or 0 */
} braid_device_buffers;

/** braid_submit for tensors in device memory; `input` of the operation is NULL. Queues the copies,
 * and returns: no thread waits for the GPU. It blocks, up to the timeout, only while 4096 pieces of
 * earlier operations are under way. What it costs, and what happens to the data, is in docs/gpu.md.
 *
 * `step` of a *dynamic* tensor's operation is ignored: the operations of such a tensor are cut into
 * pieces, and numbered in the order of submission, which is the same on all ranks. So only this
 * function submits operations of that tensor. Tensors that are not dynamic are submitted as ever.
 *
 * The input must not be overwritten, and neither memory freed, before a stream that waits for the
 * ticket (braid_stream_wait) has come to that point; or before braid_test says that it has ended.
 * `ticket` is for braid_stream_wait, braid_test, braid_wait and braid_device_release.
 *
 * BRAID_ERROR_NOT_FOUND: there is no CUDA driver. BRAID_ERROR_UNAVAILABLE: it is older than CUDA
 * 11.7, or a call of it failed. BRAID_ERROR_INVALID_ARGUMENT: also while `stream` is captured into
 * a graph. BRAID_ERROR_RESOURCE_EXHAUSTED: also where memory cannot be pinned. Where a call of CUDA
 * fails when something is queued already, the job ends. Since 0.1.1. */
BRAID_API int braid_submit_device(braid_job* job, const braid_operation* operation,
                                  const braid_device_buffers* buffers, braid_ticket* ticket);

/** What is queued on `stream` (a CUstream) from now on runs when the results are in device memory.
 *
 * With BRAID_DEVICE_STREAM_WAITS it returns at once. If the operation then fails, its results are
 * bytes of 0xFF (NaN; -1 in integers), the stream goes on, and the next call on the job says why.
 * It goes on at the operation's deadline and 5 s at the latest.
 *
 * Without it, or where streams cannot wait ($BRAID_CUDA_WAIT is "host", CUDA_LAUNCH_BLOCKING is
 * set, a GPU without stream memory operations), it first waits as braid_wait does, returns what
 * that returns, and then queues the copies of the results. Since 0.1.1. */
BRAID_API int braid_stream_wait(braid_job* job, braid_ticket ticket, void* stream);

/** Forgets the ticket, at any time: an operation that is under way goes on. Never blocks. Since
 * 0.1.1. */
BRAID_API int braid_device_release(braid_job* job, braid_ticket ticket);

/** Why the steps of this user's job of that name take what they take, in sentences, as
 * `braidctl explain` prints them. It must run on this node and have planned tensors; as long as too
 * few of its steps have ended the error is BRAID_ERROR_NOT_FOUND, and says what is missing. The
 * daemon looks at all nodes of the job for two seconds; the call takes up to eight, at most
 * `timeout_ms` (0: 10,000). It needs no open job, and holds up none. `socket_path`: as in
 * braid_job_options. `text` is for `bytes` bytes; if they are too few, the error says how many are
 * needed (64 KiB always do). Since 0.1.1. */
BRAID_API int braid_explain(const char* socket_path, const char* job_name, uint32_t timeout_ms,
                            char* text, size_t bytes);

/** A name for a new job: `wanted`, or with a number behind it ("train-2") where a job on this node,
 * of whichever user, is called so. The daemon holds it back for the caller until the job is opened,
 * for a minute at most. For rank 0, which tells the others. `name` is for `bytes` bytes; 256 are
 * always enough. Takes at most `timeout_ms` (0: 10,000); needs no open job. `socket_path`: as in
 * braid_job_options. BRAID_ERROR_PROTOCOL: a daemon before 0.1.1. Since 0.1.1. */
BRAID_API int braid_name_job(const char* socket_path, const char* wanted, uint32_t timeout_ms,
                             char* name, size_t bytes);

/** What went wrong in this thread's last failed call. Never NULL; valid until the thread's next
 * braid call. */
BRAID_API const char* braid_error_message(void);

/** "BRAID_ERROR_NOT_FOUND" for 2, and so on. */
BRAID_API const char* braid_error_name(int error);

/** The version of the library: "MAJOR.MINOR.PATCH". */
BRAID_API const char* braid_version(void);

#ifdef __cplusplus
}
#endif

#endif /* BRAID_H_ */
