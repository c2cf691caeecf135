/* SPDX-License-Identifier: MIT */
/* internal.h: what the files of the software device share: its objects, its one lock, and the functions of each file
 * under the name of that file.
 *
 * The layers, from top to bottom. A file calls files below it, and files of its own line that stand to its right:
 *
 *   software proc_address                                        the plugin; functions by name
 *   configure                                                    a new configuration, reset
 *   advice fill copy event ipc host pool_api pool_attribute      the HIP API: each file has the functions of one
 *     pool_share settings properties attribute device              subject, and checks their arguments
 *   graph_api stream_capture graph_launch
 *   memory virtual physical stream
 *   pool_order                                                   allocation from pools in the order of streams
 *   submit                                                       handing over operations, and waiting for them
 *   capture                                                      operations that become nodes of a graph
 *   scheduler_threads scheduler_stepped                          when a queue runs, and in which thread
 *   queue                                                        which operation may run
 *   execute                                                      what an operation does
 *   graph program graph_memory node_set                          operations to submit again, and their memory
 *   pool pool_blocks operation span                              what an operation works on
 *   order                                                        which operation is ordered after which
 *   mapping allocation advice_ranges handles heap                memory and tables
 *   call                                                         the start and end of each HIP function
 *   options environment error call_table                         options; names, counts and failures of calls
 *   state                                                        the state, and the current device
 *
 * One mutex guards every object. It is not held while data is copied, while a host function runs, or during a wait.
 * A HIP function is bracketed by software_begin (counts, fails on schedule, locks the mutex) and software_end (unlocks
 * the mutex, stores the error of the thread). No file calls an exported HIP function, since that would count twice.
 * Unless the comment says otherwise, the functions below expect the lock held. */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_INTERNAL_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_INTERNAL_H

#include "../../common/address_tree.h"
#include "calls.h"
#include "software.h"
#include <hip/hip_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SOFTWARE_MAX_DEVICES     64
#define SOFTWARE_PAGE_BYTES      ((size_t)4096)
#define SOFTWARE_PITCH_ALIGNMENT 256 /* of rows, in bytes */

enum software_scheduler { SOFTWARE_THREADS, SOFTWARE_STEPPED };

#define SOFTWARE_CALL_ID(name, flags) SOFTWARE_##name,
enum software_call { SOFTWARE_CALLS(SOFTWARE_CALL_ID) SOFTWARE_N_CALLS };
enum { SOFTWARE_ALLOCATES = 1, SOFTWARE_UNSAFE = 2 };

struct software_config {
  int devices;
  size_t memory_bytes;      /* of each device */
  size_t host_memory_bytes; /* for pinned and managed memory */
  enum software_scheduler scheduler;
  uint64_t seed;
  bool virtual_memory, memory_pools, managed_memory, pageable_memory_access;
  bool no_host_access;      /* the host cannot touch device memory */
  int peer_group;           /* the number of consecutive devices that can access each other's memory */
  size_t granularity_bytes; /* of virtual memory; a power of two, a page or more */
};

/* Functions of HIP that are newer than the headers of HIP 5.2. */
HIPMM_EXPORT hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *id);
HIPMM_EXPORT hipError_t hipExtHostAlloc(void **pointer, size_t bytes, unsigned int flags);
HIPMM_EXPORT hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);
HIPMM_EXPORT hipError_t hipDeviceSetLimit(enum hipLimit_t limit, size_t value);
/* Of HIP 7; a location is passed as its type and its number, one after the other. */
struct software_location {
  int type, id;
};
enum { SOFTWARE_LOCATION_DEVICE = 1, SOFTWARE_LOCATION_HOST, SOFTWARE_LOCATION_HOST_NUMA, SOFTWARE_LOCATION_HOST_NEAR };
#if HIP_VERSION_MAJOR < 7
HIPMM_EXPORT hipError_t hipMemPrefetchAsync_v2(const void *pointer, size_t bytes, struct software_location location,
                                               unsigned int flags, hipStream_t stream);
HIPMM_EXPORT hipError_t hipMemAdvise_v2(const void *pointer, size_t bytes, hipMemoryAdvise advice,
                                        struct software_location location);
#endif
#if HIP_VERSION < 60200000
typedef enum {
  HIP_GET_PROC_ADDRESS_SUCCESS = 0,
  HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
} hipDriverProcAddressQueryResult;
#endif
HIPMM_EXPORT hipError_t hipGetProcAddress(const char *name, void **function_out, int version, uint64_t flags,
                                          hipDriverProcAddressQueryResult *status_out);
#if HIP_VERSION_MAJOR < 6
HIPMM_EXPORT hipError_t hipGetDevicePropertiesR0600(void *properties, int device);
#endif
#if HIP_VERSION < 50300000
typedef int hipGraphMemAttributeType;
HIPMM_EXPORT hipError_t hipDeviceGraphMemTrim(int device);
HIPMM_EXPORT hipError_t hipDeviceGetGraphMemAttribute(int device, hipGraphMemAttributeType attribute, void *value);
HIPMM_EXPORT hipError_t hipDeviceSetGraphMemAttribute(int device, hipGraphMemAttributeType attribute, void *value);
#endif

/* ---- Objects --------------------------------------------------------------------------------------------------- */

/* The first field of every object that the application has a handle of (see handles.c). */
struct software_handle {
  struct software_handle *next_free;
  bool live;
};

/* A point in a stream: recorded by an event, or where a stream-ordered free takes effect. */
struct software_marker {
  unsigned references;
  bool done;
  double time_ms;
  const struct software_queue *queue; /* where it was submitted; NULL before */
  uint64_t sequence;
  struct software_order *order; /* what is finished before it (see order.c) */
};

enum software_memory_kind {
  SOFTWARE_DEVICE_MEMORY,
  SOFTWARE_POOLED, /* of a stream-ordered pool */
  SOFTWARE_MANAGED,
  SOFTWARE_PINNED,     /* hipHostMalloc */
  SOFTWARE_REGISTERED, /* hipHostRegister: memory of the application itself */
  SOFTWARE_OPENED      /* memory of another process */
};

/* A live block that operations may touch. It is in the table while the application may use it. Operations hold
 * references, so that an operation that executes too late finds that the block was freed. */
struct software_allocation {
  struct address_tree_node by_address; /* major: start; minor: bytes as requested */
  enum software_memory_kind kind;
  int device;
  uint32_t id;    /* unique until it wraps around */
  unsigned flags; /* as given at allocation */
  unsigned references;
  unsigned busy;   /* operations that touch it now */
  bool closing;    /* a free waits for the device: no new operation may name it */
  bool is_visible; /* its stream-ordered allocation has executed; true at once for other kinds */
  bool is_managed; /* MANAGED, and POOLED of a pool of managed memory */
  bool freed;
  struct software_block *block;
  struct software_pool_block *pool_block; /* POOLED */
  struct software_pool *pool;             /* POOLED, and OPENED through a pool */
  struct software_advice *advice;         /* of managed memory; NULL for none (see advice_ranges.c) */
  size_t mapped_bytes;                    /* OPENED: what to unmap */
  struct software_graph_memory *graph;    /* POOLED, by a node of a graph (see graph_memory.c) */
};

/* A range of memory that an operation reads or writes. */
struct software_span {
  char *start;
  size_t bytes;
  bool is_write;
  bool is_virtual; /* in mappings of virtual memory */
  int device;      /* whose access decides */
  struct software_allocation
      *allocation; /* a reference; NULL for virtual memory and memory of the application itself */
};

enum software_operation_kind {
  SOFTWARE_COPY,
  SOFTWARE_FILL,
  SOFTWARE_HOST,
  SOFTWARE_RECORD,        /* completes a marker */
  SOFTWARE_WAIT,          /* runnable when its marker is done */
  SOFTWARE_ALLOC_VISIBLE, /* a stream-ordered allocation takes effect */
  SOFTWARE_FREE_VISIBLE,  /* a stream-ordered free takes effect; completes a marker */
  SOFTWARE_PREFETCH,      /* checks its span only */
  SOFTWARE_GRAPH_ALLOC,   /* memory of a graph is there, and there no longer (see graph_memory.c) */
  SOFTWARE_GRAPH_FREE,
  SOFTWARE_GRAPH_END /* a launch of a graph is finished; completes a marker */
};

struct software_operation {
  struct software_operation *next;
  enum software_operation_kind kind;
  enum software_call call;
  uint64_t sequence; /* of submission, over all devices */
  struct software_span to, from;
  size_t width, rows;          /* COPY, FILL: bytes of each row */
  size_t to_pitch, from_pitch; /* bytes from row to row; of no use for one row */
  void *staged;                /* COPY: the data of the source, copied at the call; from is unused then */
  uint32_t value, value_bytes; /* FILL */
  hipHostFn_t function;        /* HOST */
  hipStreamCallback_t callback;
  hipStream_t stream;
  void *argument;
  struct software_marker *marker; /* of a COPY: completed with it; mostly NULL */
  struct software_allocation *allocation;
  struct software_program *program; /* GRAPH_END: of the launch */
};

/* Nodes of a graph. */
struct software_node_set {
  struct software_graph_node **nodes;
  size_t count;
};

/* Operations that execute in order. A queue outlives the handle of its stream until it is empty; then it is kept, with
 * its thread, for the next stream. Its memory is never freed, so it can always be read. */
struct software_queue {
  struct software_queue *next_active, *previous_active; /* of those with operations */
  struct software_queue *next_idle;                     /* of those without a stream */
  struct software_operation *head, *tail;
  int device;
  bool is_legacy;    /* a device's default stream */
  bool is_blocking;  /* orders itself with the default stream */
  bool is_running;   /* its head is being executed */
  bool is_abandoned; /* its stream is gone */
  bool has_thread;
  pthread_cond_t wake;
  uint64_t last_sequence;               /* of the operation submitted last */
  struct software_order *order;         /* what is finished before its next operation (see order.c) */
  struct software_capture *capture;     /* to which its operations go; NULL: they run (see capture.c) */
  struct software_queue *next_captured; /* of the capture */
  struct software_node_set tips;        /* nodes that the next node of the capture depends on */
};

struct software_stream {
  struct software_handle handle;
  struct software_queue *queue;
  uint64_t id;
  int device;
  unsigned flags;
  int priority;
};

struct software_event {
  struct software_handle handle;
  int device;
  unsigned flags;
  struct software_marker *marker; /* of the last record; NULL before */
  uint64_t capture;               /* of the last record, if it was captured, else 0 */
  struct software_node_set tips;  /* valid while that capture goes on */
};

/* A memfd, and the parts of it that are mapped and cut into blocks (see heap.c). */
struct software_heap {
  int device; /* to whose capacity it is charged; -1: to that of the host */
  int fd;     /* 0 until first used */
  uint64_t file_end, file_bytes;
  struct address_tree_node *free_by_size, *free_by_address;
  struct software_arena *arenas;
};

struct software_block {
  struct address_tree_node by_address; /* major: start; minor: bytes */
  struct address_tree_node by_size;    /* major: bytes; minor: start */
  struct software_arena *arena;
};

struct software_device {
  size_t used_bytes; /* of the capacity */
  uint64_t live_count, live_bytes;
  uint64_t faults;
  hipError_t fault; /* sticky */
  struct software_heap heap;
  struct software_queue *queue; /* of the default stream; NULL until used */
  struct software_pool *pools, *default_pool, *pool, *graph_pool;
  bool peers[SOFTWARE_MAX_DEVICES];
  unsigned flags;                 /* that the program set */
  size_t stack_bytes, heap_bytes; /* its limits */
};

struct software_state {
  pthread_mutex_t lock;
  pthread_cond_t progress; /* an operation has finished, or memory was unpinned */
  struct software_config config;
  atomic_int n_devices;         /* config.devices, for readers without the lock */
  atomic_bool is_misconfigured; /* HIPMM_SOFTWARE is not valid, and no other configuration was requested */
  uint64_t random;              /* state of the random numbers of the stepped scheduler */
  uint64_t sequence;            /* of the operation submitted last */
  uint64_t pending;             /* operations not finished */
  uint32_t last_allocation_id;
  struct software_queue *active;
  struct software_capture *captures; /* that go on */
  struct software_device devices[SOFTWARE_MAX_DEVICES];
  struct software_heap host_heap; /* of pinned and managed memory */
  size_t host_used_bytes;
  struct address_tree_node *allocations, *arenas, *reservations, *mappings; /* by address */
};

extern struct software_state software;

/* ---- state.c --------------------------------------------------------------------------------------------------- */

extern const struct software_config software_defaults;
/* Puts a configuration into force. No memory may be allocated. */
void software_state_configure(const struct software_config *config);
/* Faults, access to peers, flags and limits of a device as at the start. */
void software_state_reset_device(int device);
int software_current_device(void); /* of the calling thread; needs no lock */
void software_set_current_device(int device);
bool software_device_exists(int device); /* needs no lock */
/* How captures of other threads concern the calling thread; needs no lock. */
hipStreamCaptureMode software_capture_mode(void);
hipStreamCaptureMode software_exchange_capture_mode(hipStreamCaptureMode mode);
/* Whether `device` can be given access to the memory of `peer`; both exist. */
bool software_device_reaches(int device, int peer);

/* ---- call_table.c: needs no lock ------------------------------------------------------------------------------- */

const char *software_call_name(enum software_call call);
void software_call_count(enum software_call call);
/* Whether the software device exports a function of this name. */
bool software_has_call(const char *name);
bool software_call_is_unsafe(enum software_call call); /* a capture may forbid it */
/* The failure that is scheduled for this call of the function; hipSuccess for none. */
hipError_t software_call_failure(enum software_call call);
/* The lock of the table, for a fork. */
void software_call_table_lock(void);
void software_call_table_unlock(void);

/* ---- error.c: needs no lock ------------------------------------------------------------------------------------ */

/* A code by its name or as a decimal number; false if it is neither. */
bool software_error_parse(const char *text, hipError_t *error_out);
const char *software_error_name(hipError_t code);
const char *software_error_text(hipError_t code);

/* ---- environment.c --------------------------------------------------------------------------------------------- */

/* The initial value of every row. */
void software_environment_default(const struct hipmm_option *table, size_t n, void *options);
/* "name=value,name=value" over `options`; false, with the first part that is not valid, when one is not. Lists are
 * separated by semicolons. software_environment_free() frees the lists. */
bool software_environment_read(const struct hipmm_option *table, size_t n, const char *text, void *options,
                               char *wrong_out, size_t wrong_bytes);
void software_environment_free(const struct hipmm_option *table, size_t n, void *options);

/* ---- options.c ------------------------------------------------------------------------------------------------- */

struct software_options {
  int64_t devices;
  uint64_t memory, host_memory;
  uint32_t scheduler;
  int64_t seed;
  struct hipmm_strings fail;
  uint32_t virtual_memory, memory_pools, managed_memory, pageable_memory_access, host_access;
  uint64_t granularity;
  int64_t peer_group;
};

#define SOFTWARE_N_OPTIONS 13
extern const struct hipmm_option software_option_table[SOFTWARE_N_OPTIONS];

/* Once, before anything else: puts the configuration of HIPMM_SOFTWARE into force. Needs no lock. */
void software_options_initialise(void);
/* Whether HIPMM_SOFTWARE is not valid and no other configuration was requested; reports it once. Needs no lock. */
bool software_is_misconfigured(void);
/* The configuration that the text of HIPMM_SOFTWARE requests; schedules its failures. False, with the part that is not
 * valid, when the text cannot be read. */
bool software_options_read(const char *text, struct software_config *config_out, char *wrong_out, size_t wrong_bytes);
struct software_config software_options_config(const struct software_options *options);
bool software_options_has_valid_granularity(const struct software_options *options);
/* Whether the text is a failure on schedule, "name:nth" or "name:nth:code"; and schedules one: false if the text is none,
 * or without host memory. */
bool software_options_is_failure(const char *text);
bool software_options_schedule_failure(const char *text);

/* ---- call.c ---------------------------------------------------------------------------------------------------- */

/* Every HIP function begins with one of these and ends with its partner. enter and leave take no lock. begin takes the
 * lock even when it fails. After fork() every call in the child fails with hipErrorNotInitialized. */
hipError_t software_enter(enum software_call call);
hipError_t software_leave(hipError_t error);
hipError_t software_begin(enum software_call call);
hipError_t software_end(hipError_t error);

/* What begin does once; for functions that do not begin. Takes no lock. */
void software_prepare(void);
/* hipErrorStreamCaptureUnsupported if a capture forbids calls that are not safe, in this thread, with the captures made
 * invalid. begin does it for the calls that are marked in calls.h. */
hipError_t software_check_captures(void);
/* begin, and the current device; fails with the device's sticky fault. */
hipError_t software_begin_on_device(enum software_call call, int *device_out);

/* ---- heap.c: memory -------------------------------------------------------------------------------------------- */

/* Charges a device's capacity, or the host's for -1; false if that much is not left. */
bool software_charge(int device, size_t bytes);
void software_uncharge(int device, size_t bytes);
/* A charged block of at least `bytes`, page-aligned; NULL when capacity or the host's memory is exhausted. */
struct software_block *software_heap_allocate(struct software_heap *heap, size_t bytes);
void software_heap_free(struct software_heap *heap, struct software_block *block);
/* Unmaps everything. No block may be allocated. */
void software_heap_close(struct software_heap *heap);
/* New file space, not charged; false if there is none. discard returns its pages to the system. */
bool software_heap_extend(struct software_heap *heap, size_t bytes, uint64_t *offset_out);
void software_heap_discard(struct software_heap *heap, uint64_t offset, size_t bytes);
uint64_t software_block_offset(const struct software_block *block);
size_t software_block_bytes(const struct software_block *block);
/* A new memfd of the software device, or -1. And whether `fd` is one. */
int software_file_create(void);
bool software_file_is_ours(int fd);
size_t software_align_up(size_t bytes, size_t alignment); /* 0 on overflow */

/* ---- handles.c: objects behind handles ------------------------------------------------------------------------- */

struct software_handles {
  size_t object_bytes;
  unsigned n_chunks;
  void *chunks[26];
  struct software_handle *free_list;
};

/* A zeroed object; NULL when there is no memory. The object freed last is allocated first. */
void *software_handle_allocate(struct software_handles *handles);
void software_handle_free(struct software_handles *handles, void *object);
/* Whether `pointer`, which may be any value, is a live object. Reads no memory but that of objects. */
bool software_handle_is_live(const struct software_handles *handles, const void *pointer);
/* The live object after `object` in memory; the first for NULL. */
void *software_handle_next(const struct software_handles *handles, const void *object);

/* ---- advice_ranges.c ------------------------------------------------------------------------------------------- */

struct software_advice_facts {
  int preferred_device, prefetched_device; /* hipInvalidDeviceId: none */
  hipMemRangeCoherencyMode coherency;
  bool read_mostly;
  bool host_accesses;
  uint64_t accessing_devices; /* a bit each */
};

/* Applies `set`, with `what` and `device`, to the pages of [start, end). Makes the list at first use. */
hipError_t software_advice_apply(struct software_advice **advice, uintptr_t start, uintptr_t end,
                                 void (*set)(struct software_advice_facts *, hipMemoryAdvise, int),
                                 hipMemoryAdvise what, int device);
/* What is true of all pages of [start, end). */
struct software_advice_facts software_advice_of(struct software_advice *advice, uintptr_t start, uintptr_t end);
void software_advice_free(struct software_advice *advice); /* NULL is allowed */

/* ---- allocation.c: the table of live memory -------------------------------------------------------------------- */

/* A new block of a heap and its entry, with one reference: that of the table. */
hipError_t software_allocation_create(enum software_memory_kind kind, int device, size_t bytes,
                                      struct software_allocation **allocation_out);
/* An entry for memory of the caller. */
hipError_t software_allocation_add(enum software_memory_kind kind, int device, void *start, size_t bytes,
                                   struct software_allocation **allocation_out);
/* The entry that holds `pointer`, or that starts there; NULL for none or one being freed. */
struct software_allocation *software_allocation_holding(const void *pointer);
struct software_allocation *software_allocation_at(const void *pointer);
/* Removes the entry from the table: it can no longer be found. The memory and the reference of the table stay. */
void software_allocation_remove(struct software_allocation *allocation);
/* From here on, to touch the memory is a fault. Waits for the operations that touch it now. Drops the reference of the
 * table. */
void software_allocation_invalidate(struct software_allocation *allocation);
void software_allocation_unreference(struct software_allocation *allocation);
/* Undoes remove. */
void software_allocation_restore(struct software_allocation *allocation);
/* remove, invalidate, and free the block to its heap: for memory of no pool. */
void software_allocation_destroy(struct software_allocation *allocation);

/* ---- mapping.c ------------------------------------------------------------------------------------------------- */

/* Whether [start, start + bytes) lies in a reservation at all, and whether `device` may touch all of it, through
 * mappings older than `sequence`. */
bool software_virtual_is_reserved(uintptr_t start);
bool software_virtual_allows(uintptr_t start, size_t bytes, bool is_write, int device, uint64_t sequence);
void software_virtual_pin(uintptr_t start, int change);
/* The device whose memory is mapped at `pointer`; false if none is. */
bool software_virtual_device(const void *pointer, int *device_out);

/* Where memory that the application cannot touch lies: in a file, from `offset` on, for `bytes` at least. */
struct software_file_range {
  int fd;
  uint64_t offset;
  size_t bytes;
};

/* Of memory in a device's heap (heap.c), and of mapped memory (mapping.c); false if the address is neither. */
bool software_heap_locate(uintptr_t address, struct software_file_range *range_out);
bool software_virtual_locate(uintptr_t address, struct software_file_range *range_out);

/* ---- span.c ---------------------------------------------------------------------------------------------------- */

/* Checks at the call that [start, start + bytes) may be touched by `device`: hipErrorInvalidValue if not. The memory is
 * checked for the same device at execution. */
hipError_t software_span_open(const void *start, size_t bytes, bool is_write, int device,
                              struct software_span *span_out);
/* The bytes from the start of the first row to the end of the last; false if that is no number of bytes. */
bool software_rows_extent(size_t width, size_t more_rows, size_t pitch, size_t *bytes_out);
void software_span_close(struct software_span *span);
bool software_span_is_host(const struct software_span *span); /* memory of the application itself */
/* The device whose memory it is; -1 for memory that the host and all devices share. */
int software_span_device(const struct software_span *span);
/* Checks again at execution and pins: NULL, or why it is a fault. unpin only after a NULL. */
const char *software_span_pin(const struct software_span *span, uint64_t sequence);
void software_span_unpin(const struct software_span *span);

/* ---- order.c --------------------------------------------------------------------------------------------------- */

/* The operation was submitted to the queue: its marker gets its place there, or the queue waits for the marker. */
void software_order_submitted(struct software_queue *queue, struct software_operation *operation);
/* The operation was taken back; `before` is the operation before it, or NULL. */
void software_order_forget(struct software_queue *queue, const struct software_operation *before);
/* What the queue submits from here on runs after the marker. */
void software_order_learn(struct software_queue *queue, const struct software_marker *marker);
/* Whether the next operation of the queue runs after the marker, because of stream order, events, or the default
 * stream. False when that is not known. */
bool software_order_is_after(const struct software_queue *queue, const struct software_marker *marker);
void software_order_unreference(struct software_order *order); /* NULL is allowed */

/* ---- operation.c ----------------------------------------------------------------------------------------------- */

/* NULL when there is no memory. */
struct software_operation *software_operation_new(enum software_operation_kind kind, enum software_call call);
void software_operation_free(struct software_operation *operation);
struct software_marker *software_marker_new(void);
struct software_marker *software_marker_reference(struct software_marker *marker);
void software_marker_unreference(struct software_marker *marker); /* NULL is allowed */
void software_marker_finish(struct software_marker *marker);

/* ---- pool.c ---------------------------------------------------------------------------------------------------- */

/* What a stream-ordered free does when its queue comes to it. */
void software_pool_free_visible(struct software_operation *operation);
/* Frees what pools of the device hold in reserve above `keep` bytes (their own thresholds if NULL), as far as their
 * frees have executed. */
void software_pools_trim(int device, const size_t *keep);
void software_pools_reset(int device);

/* ---- graph_memory.c, program.c --------------------------------------------------------------------------------- */

/* Executes GRAPH_ALLOC or GRAPH_FREE. */
void software_graph_memory_execute(struct software_operation *operation);
/* Frees memory of a graph now, for a call that has waited for its work. */
void software_graph_memory_free(struct software_allocation *allocation);
void software_program_unreference(struct software_program *program);
void software_programs_reset(int device); /* graph_api.c; of all devices */
void software_graphs_reset(int device);   /* graph.c; of all devices */
bool software_graphs_exist(void);         /* graph.c */

/* ---- execute.c ------------------------------------------------------------------------------------------------- */

/* Does what the operation says. Releases the lock meanwhile. */
void software_operation_execute(struct software_operation *operation, int device);

/* ---- queue.c --------------------------------------------------------------------------------------------------- */

/* A queue without operations; NULL when there is no memory. */
struct software_queue *software_queue_acquire(int device, bool is_blocking);
/* Its stream is gone: the queue finishes its operations, and then serves another stream. */
void software_queue_abandon(struct software_queue *queue);
void software_queue_append(struct software_queue *queue, struct software_operation *operation);
/* Undoes append, at once: `before` is what was the last operation before it. */
void software_queue_remove_last(struct software_queue *queue, struct software_operation *before);
bool software_queue_is_runnable(const struct software_queue *queue);
/* Executes the head of a runnable queue. Releases the lock meanwhile. */
void software_queue_run(struct software_queue *queue);
/* Whether all up to `sequence` is finished: on the queue, and for a default stream on all streams that order themselves
 * with it. */
bool software_queue_is_done(const struct software_queue *queue, uint64_t sequence);

/* ---- scheduler_threads.c, scheduler_stepped.c ------------------------------------------------------------------ */

/* Makes sure that a thread will run the queue; false if no thread can be had. */
bool software_threads_prepare(struct software_queue *queue);
/* software_queue_run, and wakes the threads of the queues that can go on now. */
void software_threads_run(struct software_queue *queue);

/* Runs one operation; false if none is runnable. */
bool software_stepped_step(void);
/* A random number below `limit`, of the sequence that the seed determines. */
uint64_t software_stepped_draw(uint64_t limit);
/* A query of an event or stream runs a few operations, so that a loop of queries comes to an end. */
void software_stepped_poll(void);

/* ---- capture.c ------------------------------------------------------------------------------------------------- */

/* The operation becomes a node. On failure it is freed. */
hipError_t software_capture_add(struct software_queue *queue, struct software_operation *operation);
/* hipMallocAsync and hipFreeAsync on a queue that captures. */
hipError_t software_capture_allocate(struct software_queue *queue, size_t bytes, enum software_call call,
                                     void **pointer_out);
hipError_t software_capture_free(struct software_queue *queue, struct software_allocation *allocation);
/* For a call that a capture forbids on its streams: hipErrorStreamCaptureUnsupported if the queue captures, and the
 * capture is invalid then. For work on a default stream: hipErrorStreamCaptureImplicit if a blocking stream of its device
 * captures. For a wait for the device: hipErrorStreamCaptureUnsupported if one of its streams captures. */
hipError_t software_capture_forbid(const struct software_queue *queue);
hipError_t software_capture_check(const struct software_queue *queue);
hipError_t software_capture_forbid_device(int device);
/* The stream of the queue is gone. */
void software_capture_leave(struct software_queue *queue);
void software_captures_reset(int device); /* stream_capture.c; of all devices */

/* ---- submit.c -------------------------------------------------------------------------------------------------- */

/* Hands the operation over. On failure it is freed. */
hipError_t software_submit(struct software_queue *queue, struct software_operation *operation);
/* Makes sure that no submission to the queue fails for want of a thread; false if there is none. */
bool software_submit_prepare(struct software_queue *queue);
/* The same for a copy that runs on `runner` in the order of both queues: after all earlier operations of both, and before
 * all later ones. */
hipError_t software_submit_to(struct software_queue *runner, struct software_operation *operation,
                              struct software_queue *queue);
/* Waits until what was submitted up to `sequence` is finished: on the queue (for a default stream, on all streams that
 * order themselves with it), or on a device, -1 for all. */
void software_wait_queue(const struct software_queue *queue, uint64_t sequence);
void software_wait_device(int device, uint64_t sequence);
void software_wait_marker(struct software_marker *marker);

/* ---- pool_order.c ---------------------------------------------------------------------------------------------- */

/* A free of a pooled allocation that takes effect now. */
void software_pool_free(struct software_allocation *allocation);
/* For memory opened through a pool, before it is destroyed other than by hipFreeAsync. */
void software_pool_forget(struct software_allocation *allocation);
/* Waits until all reserves of the device's pools can be freed, and frees them; false if there were none. */
bool software_pools_drain(int device);

/* ---- stream.c -------------------------------------------------------------------------------------------------- */

/* The queue behind a handle, which may be any value: NULL and 1 are the current device's default stream, 2 the
 * thread's. hipErrorInvalidHandle for what is not live, else the sticky fault of the stream's device. */
hipError_t software_queue_find(hipStream_t stream, struct software_queue **queue_out);
hipError_t software_default_queue(int device, struct software_queue **queue_out);
void software_streams_reset(int device); /* -1: all */

/* ---- memory.c -------------------------------------------------------------------------------------------------- */

/* The kinds of memory that hipFree frees. */
#define SOFTWARE_FREEABLE (1U << SOFTWARE_DEVICE_MEMORY | 1U << SOFTWARE_POOLED | 1U << SOFTWARE_MANAGED)
/* Frees what starts at `pointer` if its kind is in `kinds` (bits 1 << kind), after the work that may use it. */
hipError_t software_free(void *pointer, unsigned kinds);

/* ---- The HIP API ----------------------------------------------------------------------------------------------- */

extern const char software_device_name[], software_device_architecture[]; /* device.c */
void software_device_uuid(int device, unsigned char uuid_out[16]);        /* device.c; needs no lock */
/* attribute.c: any attribute by its number; hipErrorInvalidValue for one that the device does not have. */
hipError_t software_attribute(int attribute, int device, int *value_out);
/* pool_attribute.c: whether the device may write to memory of the pool. */
bool software_pool_allows(const struct software_pool *pool, int device);
/* copy.c: submits an operation of `queue` to `runner`, which may be the same; if `waits`, until it has run. On failure
 * it is freed. */
hipError_t software_submit_and_wait(struct software_queue *queue, struct software_queue *runner,
                                    struct software_operation *operation, bool waits);
void software_events_reset(int device);  /* event.c; -1: all */
void software_virtual_reset(int device); /* virtual.c; -1: all */

/* ---- configure.c ----------------------------------------------------------------------------------------------- */

/* Puts a configuration into force and resets everything; false while memory is still allocated. Takes the lock. */
bool software_configure(const struct software_config *config);

#endif
