/* SPDX-License-Identifier: MIT */
/* state.h: the objects of the software device, its one lock, and the lowest layers: state, names, counts and failures
 * of calls, options, and the start and end of each HIP function. Unless a comment says otherwise, functions expect the
 * lock held. */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_STATE_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_STATE_H

#include "../../../core/base/key_tree.h"
#include "../../../core/base/output_file.h"
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
  bool check_streams;       /* the race detector is on */
  bool rocm_mapping;        /* virtual memory has the faults of ROCm 7.14 */
  int hip_version;          /* 0: that of the program (see version.c) */
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
/* Of HIP 7.2 to 7.15. */
HIPMM_EXPORT hipError_t hipMemGetDefaultMemPool(hipMemPool_t *handle, hipMemLocation *location,
                                                hipMemAllocationType type);
HIPMM_EXPORT hipError_t hipMemGetMemPool(hipMemPool_t *handle, hipMemLocation *location, hipMemAllocationType type);
HIPMM_EXPORT hipError_t hipMemSetMemPool(hipMemLocation *location, hipMemAllocationType type, hipMemPool_t handle);
#if HIP_VERSION_MAJOR < 7
typedef enum { hipMemRangeHandleTypeDmaBufFd = 1 } hipMemRangeHandleType;
HIPMM_EXPORT hipError_t hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t pointer, size_t bytes,
                                                       hipMemRangeHandleType type, unsigned long long flags);
typedef struct hipMemcpyAttributes hipMemcpyAttributes;
HIPMM_EXPORT hipError_t hipMemcpyBatchAsync(void **to, void **from, size_t *bytes, size_t count,
                                            hipMemcpyAttributes *attributes, size_t *first_copies, size_t n_attributes,
                                            size_t *failed_out, hipStream_t stream);
#define SOFTWARE_FILL_ROWS(bits, type)                                                                         \
  HIPMM_EXPORT hipError_t hipMemsetD2D##bits(hipDeviceptr_t to, size_t pitch, type value, size_t width,        \
                                             size_t height);                                                   \
  HIPMM_EXPORT hipError_t hipMemsetD2D##bits##Async(hipDeviceptr_t to, size_t pitch, type value, size_t width, \
                                                    size_t height, hipStream_t stream);
SOFTWARE_FILL_ROWS(8, unsigned char)
SOFTWARE_FILL_ROWS(16, unsigned short)
SOFTWARE_FILL_ROWS(32, unsigned int)
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
typedef struct hipMemAllocNodeParams {
  hipMemPoolProps poolProps;
  const hipMemAccessDesc *accessDescs;
  size_t accessDescCount, bytesize;
  void *dptr;
} hipMemAllocNodeParams;
HIPMM_EXPORT hipError_t hipGraphAddMemAllocNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                                                size_t n_after, hipMemAllocNodeParams *params);
HIPMM_EXPORT hipError_t hipGraphAddMemFreeNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                                               size_t n_after, void *pointer);
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
  struct software_order *order;   /* what is finished before it (see order.c) */
  struct software_queue *waiting; /* queues whose first operation waits for it (see ready.c) */
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
  struct key_tree_node by_address; /* major: start; minor: bytes as requested */
  enum software_memory_kind kind;
  int device;
  uint32_t id;    /* unique until it wraps around */
  unsigned flags; /* as given at allocation */
  unsigned references;
  unsigned busy;   /* operations that touch it now */
  bool closing;    /* a free waits for the device: no new operation may name it */
  bool is_visible; /* its stream-ordered allocation has executed; true at once for other kinds */
  bool is_managed; /* MANAGED, and POOLED of a pool of managed memory */
  bool is_host;    /* PINNED, REGISTERED, and POOLED of a pool of the host's memory */
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
  SOFTWARE_EMPTY,         /* of a graph: does nothing, and others depend on it */
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

/* What the first operation of a queue waits for, as far as that was found out. */
enum software_readiness {
  SOFTWARE_INACTIVE, /* there is none */
  SOFTWARE_READY,    /* maybe for nothing */
  SOFTWARE_WAITING,  /* for its marker */
  SOFTWARE_HELD      /* for earlier operations of a default stream, or of the blocking streams */
};

/* Operations that execute in order. A queue outlives the handle of its stream until it is empty; then it is kept, with
 * its thread, for the next stream. Its memory is never freed, so it can always be read. */
struct software_queue {
  struct software_queue *next_active, *previous_active; /* of those with operations */
  struct software_queue *next_idle;                     /* of those without a stream */
  struct software_queue *next_ready, *previous_ready;   /* ready.c */
  struct software_queue *next_parked;
  const struct software_queue *holder; /* of a default stream: the queue that held it when it was parked */
  enum software_readiness readiness;
  uint64_t activated; /* when it got its first operation: a higher number is later */
  struct software_operation *head, *tail;
  int device;
  hipStream_t stream; /* as the application knows it; of a default stream NULL, of a thread's hipStreamPerThread */
  bool is_legacy;     /* a device's default stream */
  bool is_blocking;   /* orders itself with the default stream */
  bool is_running;    /* its head is being executed */
  bool is_abandoned;  /* its stream is gone */
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

/* A memfd that the device keeps. The program may close its descriptor, and open a file of its own, which gets the number: so
 * the descriptor is read through software_file_descriptor() alone. */
struct software_file {
  int fd; /* 0: none */
  struct output_file_identity identity;
};

/* A memfd, and the parts of it that are mapped and cut into blocks (see heap.c). */
struct software_heap {
  int device;                /* to whose capacity it is charged; -1: to that of the host */
  struct software_file file; /* none until first used */
  uint64_t file_end, file_bytes;
  struct key_tree_node *free_by_size, *free_by_address;
  struct software_arena *arenas;
};

struct software_block {
  struct key_tree_node by_address; /* major: start; minor: bytes */
  struct key_tree_node by_size;    /* major: bytes; minor: start */
  struct software_arena *arena;
};

struct software_device {
  size_t used_bytes; /* of the capacity */
  uint64_t live_count, live_bytes;
  uint64_t faults;
  hipError_t fault; /* sticky */
  struct software_heap heap;
  struct software_queue *queue; /* of the default stream; NULL until used */
  struct software_queue *held;  /* blocking queues that the default stream holds (see ready.c) */
  uint64_t earliest_sequence;   /* of an operation of a blocking queue, now or later */
  struct software_pool *pools, *graph_pool;
  struct software_pool *default_pool[2], *pool[2]; /* of pinned and of managed memory */
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
  int program_version;          /* of HIP; constant from the first call on */
  uint64_t random;              /* state of the random numbers of the stepped scheduler */
  uint64_t (*choose)(void *arg, uint64_t limit); /* takes their place; NULL: none */
  void *choose_arg;
  uint64_t sequence; /* of the operation submitted last */
  uint64_t pending;  /* operations not finished */
  unsigned running;  /* queues whose head is being executed */
  uint32_t last_allocation_id;
  struct software_queue *active, *ready;
  struct software_capture *captures; /* that go on */
  struct software_device devices[SOFTWARE_MAX_DEVICES];
  struct software_heap host_heap; /* of pinned and managed memory */
  size_t host_used_bytes;
  struct key_tree_node *allocations, *arenas, *reservations, *mappings; /* by address */
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
/* The number of the location's device, which may be any from 0 on; hipCpuDeviceId for the host, which has one node, 0. False
 * for a location that is neither. Needs no lock. */
bool software_location_device(struct software_location location, int *device_out);
/* How captures of other threads concern the calling thread; needs no lock. */
hipStreamCaptureMode software_capture_mode(void);
hipStreamCaptureMode software_exchange_capture_mode(hipStreamCaptureMode mode);
/* Whether `device` can be given access to the memory of `peer`; both exist. */
bool software_device_reaches(int device, int peer);

/* ---- version.c ------------------------------------------------------------------------------------------------- */

/* Once, before the configuration: looks for the program's HIP. */
void software_version_find(void);
/* Of HIP, as HIP_VERSION: the numbers and structs that the program knows; needs no lock. */
int software_version(void);

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
  uint32_t check_streams, hip, rocm_mapping;
  uint64_t granularity;
  int64_t peer_group;
};

#define SOFTWARE_N_OPTIONS 16
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
/* hipErrorStreamCaptureUnsupported if a capture forbids calls that are not safe, in this thread; the captures are invalid
 * then. begin does it for the calls that are marked in calls.h; the others do it after checks of their own. */
hipError_t software_check_captures(void);
/* begin, and the current device; fails with the device's sticky fault. */
hipError_t software_begin_on_device(enum software_call call, int *device_out);

#endif
