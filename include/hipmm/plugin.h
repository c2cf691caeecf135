/* SPDX-License-Identifier: MIT */
/* hipmm/plugin.h: the interface between hipmm and the plugins that bring resource types.
 *
 * A plugin is a shared object TYPE.so that exports one constant, the descriptor, and imports nothing from libhipmm:
 *
 *     const struct hipmm_plugin mine_LTX_hipmm_plugin = {HIPMM_PLUGIN_HEAD, .type = "mine", …};
 *
 * The name is the file's stem, then _LTX_hipmm_plugin; a third party may export plain `hipmm_plugin` instead. The
 * descriptor is pure data: it, its tables and their texts must be constants of loaded objects, not memory of the heap;
 * hipmm checks this. Of a plugin's functions only `validate` runs before `create`. The descriptor's options (with their
 * defaults, ranges and doc lines), values and actions are the documentation: `hipmm describe`, the JSON Schema,
 * validation and error messages derive from them.
 *
 * Compatibility: a struct that crosses the border begins with its size and grows only at its end, or its comment says
 * that it never grows. A plugin that was built against an older plugin.h of the same HIPMM_PLUGIN_ABI always works
 * (doc/abi.md). */
#ifndef HIPMM_PLUGIN_H
#define HIPMM_PLUGIN_H

#include <hipmm/inspect.h>
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIPMM_PLUGIN_ABI 1

/* The smallest alignment of every resource in bytes, as in RMM and HIP. */
#define HIPMM_ALIGNMENT 256

#if defined(__GNUC__)
#define HIPMM_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define HIPMM_EXPORT              __attribute__((visibility("default")))
#else
#define HIPMM_PRINTF(text, first)
#define HIPMM_EXPORT
#endif

/* ---- The resource ---------------------------------------------------------------------------------------------- */

/* A live block of a resource. Never grows. */
struct hipmm_block {
  void *ptr;    /* as allocate returned it */
  size_t bytes; /* as requested */
};

/* Virtual memory: chunks of physical memory that can be mapped at any address of a reserved range, and remapped without
 * copying. Sources may offer it; a sub-allocator directly above may use it instead of allocate. All sizes are in bytes
 * and multiples of the granularity. Thread-safe. Each function reports its failure, as an op does. */
struct hipmm_mapping {
  size_t struct_size;

  /* The size of the smallest chunk. HIPMM_E_NOT_SUPPORTED if this runtime or device has no virtual memory. */
  enum hipmm_status (*granularity)(void *self, size_t *bytes_out);

  /* Reserves address space without memory, and frees it. */
  enum hipmm_status (*reserve)(void *self, size_t bytes, void **address_out);
  enum hipmm_status (*unreserve)(void *self, void *address, size_t bytes);

  /* Creates a chunk of physical memory without an address, and destroys it. The chunk counts as held. */
  enum hipmm_status (*create)(void *self, size_t bytes, void **chunk_out);
  enum hipmm_status (*destroy)(void *self, void *chunk, size_t bytes);

  /* Maps a whole chunk at `address`, readable and writable by the device and by every other device of the process that
   * can reach it, and unmaps it. No work may use the address during unmap. */
  enum hipmm_status (*map)(void *self, void *address, size_t bytes, void *chunk);
  enum hipmm_status (*unmap)(void *self, void *address, size_t bytes);

  /* Nonzero if a chunk may be mapped at several addresses at once, and work sees what earlier work wrote through
   * another address. NULL: no. */
  int (*may_alias)(void *self);

  /* Static string: why `auto` should not use virtual memory, as the end of a sentence. NULL, as result or as function,
   * if there is no objection. */
  const char *(*discouraged_reason)(void *self);

  /* A file descriptor of the chunk for another process, which the caller closes. HIPMM_E_NOT_SUPPORTED if the chunks were
   * not created for that. NULL: they never are. */
  enum hipmm_status (*export_chunk)(void *self, void *chunk, int *fd_out);

  /* Nonzero if chunks are created for other processes. Such a process reaches all of a chunk, so a resource above should give
   * the blocks that it may export chunks of their own. NULL: no. */
  int (*may_export)(void *self);

  /* The most chunks that a resource above should have at a time, for example because each takes a file descriptor of the
   * process. 0 or NULL: any number. */
  uint64_t (*most_chunks)(void *self);

  /* As `create`, but other processes can get the chunk, whatever may_export says. NULL: create() makes such chunks, or
   * nothing can. */
  enum hipmm_status (*create_shared)(void *self, size_t bytes, void **chunk_out);
};

/* A chunk of a struct hipmm_mapping, and where it is mapped. */
struct hipmm_chunk {
  void *handle; /* as hipmm_mapping.create returned it; NULL while the resource is suspended */
  const void *ptr;
  size_t bytes;
};

/* What a resource knows of a live block besides hipmm_block. The core sets struct_size, and usable_bytes to the size as
 * requested; the resource writes what it knows. */
struct hipmm_location {
  size_t struct_size;
  size_t usable_bytes; /* from the start of the block on, at least as requested */
  hipmm_stream_t stream;
  uint32_t has_stream; /* nonzero: `stream` is the stream of the allocation */
  uint32_t unused;
};

/* Memory shared between processes (hipmm/share.h). Sources over a driver's pool may offer it. Thread-safe. */
struct hipmm_share_pointer;
struct hipmm_share_block;
struct hipmm_share_part;

/* A function may be NULL: the core then asks the resources below. */
struct hipmm_sharing {
  size_t struct_size;

  /* A file descriptor of the pool. The caller closes it. */
  enum hipmm_status (*export_fd)(void *self, int *fd_out);

  /* Describes the live block at `ptr` for another process: writes `bytes` and `data`. */
  enum hipmm_status (*export_pointer)(void *self, const void *ptr, struct hipmm_share_pointer *pointer_out);

  /* Imports another process's block as a live block of this resource. */
  enum hipmm_status (*import_pointer)(void *self, const struct hipmm_share_pointer *pointer, void **ptr_out);

  /* Imports another process's mapped block as a live block of this resource. The block has at least one part. */
  enum hipmm_status (*import_block)(void *self, const struct hipmm_share_block *block,
                                    const struct hipmm_share_part *parts, void **ptr_out);

  /* As the op `allocate`, but export_pointer() can export the block (HIPMM_ALLOCATE_EXPORTABLE). */
  enum hipmm_status (*allocate)(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
};

/* Reservations (hipmm/reserve.h). A reservation is a resource of this type with the option "reservation", over another
 * resource of this type. Thread-safe. */
struct hipmm_reserving {
  size_t struct_size;

  /* Gives memory to a reservation that has none. Waits up to `timeout_ns` for its turn; below 0: for ever. It asks no resource
   * for memory. HIPMM_E_LIMIT: the reservation still has none. */
  enum hipmm_status (*reserve)(void *self, uint64_t bytes, int64_t timeout_ns, int64_t priority);

  /* Changes the reservation's bytes, and never waits. HIPMM_E_LIMIT: nothing has changed. */
  enum hipmm_status (*resize)(void *self, uint64_t bytes);

  /* Gives back what the reservation's blocks do not use. HIPMM_E_STATE: the reservation has no memory. */
  enum hipmm_status (*release)(void *self);
};

/* Spans (hipmm/span.h). `ptr` is where a live span of this resource starts; if not, HIPMM_E_POINTER. Thread-safe. */
struct hipmm_spans {
  size_t struct_size;

  /* hipmm_span_create() and so on. */
  enum hipmm_status (*create)(void *self, size_t bytes, size_t *granule_out, void **ptr_out);
  enum hipmm_status (*commit)(void *self, void *ptr, size_t offset, size_t bytes);
  enum hipmm_status (*decommit)(void *self, void *ptr, size_t offset, size_t bytes, hipmm_stream_t stream);
  enum hipmm_status (*destroy)(void *self, void *ptr, hipmm_stream_t stream);

  /* Nonzero if `ptr` lies in a live span: its addresses. */
  int (*find)(void *self, const void *ptr, struct hipmm_block *span_out);
};

/* Movable buffers (hipmm/spill.h). `movable` is memory of the core for what the resource knows of a buffer: HIPMM_MOVABLE_BYTES
 * bytes, at first the program's handle (a struct hipmm_movable *) and then zeros, which stay at their address until `destroy`
 * succeeds. Thread-safe, but no call for a buffer comes with or after its `destroy`. Each function does what the function of spill.h says. */
enum { HIPMM_MOVABLE_BYTES = 80 };

struct hipmm_moving {
  size_t struct_size;
  enum hipmm_status (*create)(void *self, size_t bytes, void *movable);
  enum hipmm_status (*destroy)(void *self, void *movable);

  /* If an upstream has no memory: returns its status at once where hipmm_may_wait() says no. The core asks other resources
   * for idle memory then, and calls again. */
  enum hipmm_status (*pin)(void *self, void *movable, hipmm_stream_t stream, void **ptr_out);
  enum hipmm_status (*unpin)(void *self, void *movable, hipmm_stream_t stream);
};

/* A moment of the end of a process. The device can be used in both. */
enum hipmm_process_end {
  HIPMM_PROCESS_EXITS = 0, /* exit() was called, or main returned: the program may still free memory */
  HIPMM_PROCESS_ENDED = 1, /* the program's own functions for its exit have run: what is live is never freed */
  HIPMM_PROCESS_END_FORCE_32BIT = 0x7fffffff
};

/* The operations of a resource. `self` is what create returned. Any thread calls any op between create and destroy,
 * unless the descriptor has HIPMM_PLUGIN_NOT_THREAD_SAFE. An optional op that is NULL is filled in at load. A failing
 * op has reported the reason through its services, or returns the status of an upstream. */
struct hipmm_ops {
  size_t struct_size;

  /* Required. `alignment` is a power of two, at least HIPMM_ALIGNMENT. The memory is ready for work on `stream`. Zero
   * bytes give NULL and succeed (adaptors pass them down, since adaptors count and log them). */
  enum hipmm_status (*allocate)(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);

  /* Required. `bytes` is 0 if the caller does not know the size. NULL is not an error. A pointer that is not live here
   * is HIPMM_E_POINTER, a wrong size HIPMM_E_SIZE; both change nothing. */
  enum hipmm_status (*deallocate)(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);

  /* Returns free memory above `keep_bytes` to the upstreams. The core calls it from the top down. A thread that has
   * found no memory in another resource of the device may cause the call: then services->reclaim_level() may say not to
   * wait. Default: nothing, and the resource is not asked for memory. */
  enum hipmm_status (*trim)(void *self, size_t keep_bytes);

  /* The value in row `index` of the descriptor's values. A resource with the values of struct hipmm_statistics takes no lock
   * for them: the report of a process reads them while the process ends, when a thread may have stopped in the resource. */
  enum hipmm_status (*query)(void *self, size_t index, int64_t *value_out);

  /* Performs the action in row `index` of the descriptor's actions, atomically. Writes all of the descriptor's values,
   * as they were for the action, into values_out, in the order of the rows. */
  enum hipmm_status (*perform)(void *self, size_t index, int64_t *values_out);

  /* The live block that starts at `ptr`; HIPMM_E_POINTER if there is none. A resource that returns its upstream's
   * pointers unchanged leaves it NULL: the core then asks the upstream. With HIPMM_PLUGIN_HANDS_ON the core also asks
   * the upstream for pointers that this resource does not know. */
  enum hipmm_status (*find)(void *self, const void *ptr, struct hipmm_block *block_out);

  /* `stream` is still valid and will be destroyed: forget it. Default: nothing. */
  void (*stream_retire)(void *self, hipmm_stream_t stream);

  /* `stream` lives until it is retired: its handle may be used after the call that passed it. Default: nothing. */
  void (*stream_retain)(void *self, hipmm_stream_t stream);

  /* NULL: this type offers no virtual memory. */
  const struct hipmm_mapping *mapping;

  /* The option called `option`, which has HIPMM_OPTION_RELOADABLE, has a new value. `options` is the plugin's option
   * struct, filled and checked again. It replaces the struct that create got, and lives until destroy; so do the
   * earlier structs, which other threads may still read. Calls for one resource are serialised; other ops run
   * meanwhile. A failure changes nothing. Required if an option is reloadable. */
  enum hipmm_status (*reconfigure)(void *self, const char *option, const void *options);

  /* Calls `visitor` for every extent of memory that this resource holds from its upstreams, if possible in the order of
   * addresses. Each extent is consistent in itself only. `visitor` calls no function of hipmm. Default: nothing. */
  enum hipmm_status (*visit)(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                             void *closure);

  /* NULL: this type shares nothing with other processes. */
  const struct hipmm_sharing *sharing;

  /* Writes a report for people on the resource's state, such as a list of live blocks, through `write`: one call for
   * each line, without its end. `write` calls no function of hipmm. NULL: this type has no report. */
  enum hipmm_status (*report)(void *self, void (*write)(void *closure, const char *line), void *closure);

  /* Nonzero if `ptr` lies in an upstream's block that this resource divides (at least, if that block starts at `ptr`).
   * Such a block is live in the upstream, and only this resource may free it: if ops->find does not know the pointer,
   * the core does not ask the upstream. Default: 0. */
  int (*covers)(void *self, const void *ptr);

  /* From now on work of another device may access this resource's memory: the memory that it has, and memory that it
   * gets later. Called only if services->devices_are_announced, while a stack of that device is built, and maybe
   * several times for one device. If it fails, that stack is not built. NULL: nothing needs to be done. */
  enum hipmm_status (*grant_access)(void *self, int device);

  /* What else is known of the live block that starts at `ptr`. NULL: only what ops->find says. */
  enum hipmm_status (*locate)(void *self, const void *ptr, struct hipmm_location *location_out);

  /* Calls `visitor` for every chunk of the upstream that is mapped behind the live block that starts at `ptr`, in the
   * order of addresses. The chunks stay as long as the block is allocated, and until this op returns no other op, such
   * as suspend, takes their memory. The visitor may call mapping->export_chunk of the upstream, and no other function
   * of hipmm. It returns nonzero once the chunks of the block up to this one are exported to other processes: then
   * suspend leaves the block its memory while it is allocated. With `ptr` NULL: every chunk that has an address now, in any
   * order; what the visitor returns does not count. NULL: this type maps no memory. */
  enum hipmm_status (*visit_chunks)(void *self, const void *ptr,
                                    int (*visitor)(void *closure, const struct hipmm_chunk *chunk), void *closure);

  /* The process ends, and the resource will not be destroyed: logs what destroy would log, and changes nothing. `hipmm
   * run` calls it twice, once for each moment; other threads may run, and may call other ops. The user sees the reason
   * of a failure. NULL: nothing. */
  enum hipmm_status (*process_end)(void *self, enum hipmm_process_end moment);

  /* suspend waits for the device's work, gives all memory back to the upstreams, and keeps the addresses. resume puts
   * memory there again (hipmm_resource_suspend()). In between the core refuses allocations, and does not call suspend
   * again; all other ops work. After a failure everything is as it was. HIPMM_E_NOT_SUPPORTED: this resource cannot,
   * for a reason that its options explain. Calls of both are serialised. Both NULL: this type cannot. */
  enum hipmm_status (*suspend)(void *self, enum hipmm_content content);
  enum hipmm_status (*resume)(void *self);

  /* As allocate and deallocate, for a caller that holds a lock which other threads may want in a function of the
   * program (hipmm_buffer_try_create()). They wait for no thread and no device, and call neither the runtime nor a
   * function of the program. They call upstreams only by these ops. Nonzero: the call was served. 0: nothing was done
   * and nothing reported; the caller then calls allocate or deallocate without that lock. NULL: always 0. */
  int (*try_allocate)(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
  int (*try_deallocate)(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);

  /* NULL: this type makes no reservations. */
  const struct hipmm_reserving *reserving;

  /* NULL: this type serves no spans. */
  const struct hipmm_spans *spans;

  /* NULL: this type has no movable buffers. */
  const struct hipmm_moving *moving;
};

/* A resource at any depth of a stack. Never grows. A plugin calls its upstreams through the functions below. Only the
 * core creates these structs. */
struct hipmm_resource {
  const struct hipmm_ops *ops;
  void *self;
};

static inline enum hipmm_status hipmm_upstream_allocate(struct hipmm_resource *upstream, size_t bytes, size_t alignment,
                                                        hipmm_stream_t stream, void **ptr_out)
{
  return upstream->ops->allocate(upstream->self, bytes, alignment, stream, ptr_out);
}

static inline enum hipmm_status hipmm_upstream_deallocate(struct hipmm_resource *upstream, void *ptr, size_t bytes,
                                                          size_t alignment, hipmm_stream_t stream)
{
  return upstream->ops->deallocate(upstream->self, ptr, bytes, alignment, stream);
}

/* Whether a request failed because the device, or a limit, has no memory left for it. A smaller request, a request to
 * another resource, or the same request after a free may succeed. */
static inline int hipmm_is_out_of_memory(enum hipmm_status status)
{
  return status == HIPMM_E_OUT_OF_MEMORY || status == HIPMM_E_LIMIT;
}

/* The status of a resource after services->ask_program. Each resource above returns it to its caller, as it returns
 * failures other than out of memory, and makes no further attempt. Once all have returned, the core asks the program
 * and repeats the call. The program never sees this status. */
#define HIPMM_CALL_AGAIN ((enum hipmm_status)1)

/* ---- The HIP functions ------------------------------------------------------------------------------------------ */

/* HIP's hipEvent_t, hipMemPool_t and hipMemGenericAllocationHandle_t, to which HIP's types convert without a cast. */
typedef void *hipmm_hip_event_t;
typedef void *hipmm_hip_mempool_t;
typedef void *hipmm_hip_chunk_t;

/* The numbers of HIP that plugins need; core/runtime/hip_table.c checks each against HIP's headers. */
enum {
  HIPMM_HIP_SUCCESS = 0,
  HIPMM_HIP_ERROR_INVALID_VALUE = 1,
  HIPMM_HIP_ERROR_OUT_OF_MEMORY = 2,
  HIPMM_HIP_ERROR_NO_DEVICE = 100,
  HIPMM_HIP_ERROR_INVALID_DEVICE = 101,
  HIPMM_HIP_ERROR_INVALID_HANDLE = 400,
  HIPMM_HIP_ERROR_NOT_READY = 600,
  HIPMM_HIP_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  HIPMM_HIP_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
  HIPMM_HIP_ERROR_NOT_SUPPORTED = 801,
  HIPMM_HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  HIPMM_HIP_ERROR_STREAM_CAPTURE_IMPLICIT = 906,

  HIPMM_HIP_EVENT_DISABLE_TIMING = 2,
  HIPMM_HIP_STREAM_NON_BLOCKING = 1,
  HIPMM_HIP_HOST_MALLOC_PORTABLE = 1,
  HIPMM_HIP_HOST_REGISTER_PORTABLE = 1,
  HIPMM_HIP_MEM_ATTACH_GLOBAL = 1,
  HIPMM_HIP_MEMCPY_DEFAULT = 4, /* the addresses give the direction */

  HIPMM_HIP_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
  HIPMM_HIP_POOL_REUSE_ALLOW_OPPORTUNISTIC = 2,
  HIPMM_HIP_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
  HIPMM_HIP_POOL_RELEASE_THRESHOLD = 4,
  HIPMM_HIP_POOL_RESERVED_CURRENT = 5,
  HIPMM_HIP_POOL_RESERVED_HIGH = 6,
  HIPMM_HIP_POOL_USED_CURRENT = 7,
  HIPMM_HIP_POOL_USED_HIGH = 8,

  HIPMM_HIP_HANDLE_NONE = 0,
  HIPMM_HIP_HANDLE_POSIX_FD = 1,

  HIPMM_HIP_ACCESS_NONE = 0,
  HIPMM_HIP_ACCESS_READ = 1,
  HIPMM_HIP_ACCESS_READ_WRITE = 3,

  HIPMM_HIP_ADVISE_READ_MOSTLY = 1,
  HIPMM_HIP_ADVISE_PREFERRED_LOCATION = 3,
  HIPMM_HIP_ADVISE_ACCESSED_BY = 5,
  HIPMM_HIP_ADVISE_COARSE_GRAIN = 100,
  HIPMM_HIP_CPU_DEVICE = -1
};

/* The size of hipMemPoolPtrExportData, which describes a pointer of a pool for other processes. */
enum { HIPMM_HIP_POINTER_BYTES = 64 };

/* The device attributes that plugins ask for; HIP has kept these numbers from 5.2 on. */
enum {
  HIPMM_HIP_DEVICE_CONCURRENT_MANAGED_ACCESS = 9,
  HIPMM_HIP_DEVICE_MANAGED_MEMORY = 24,
  HIPMM_HIP_DEVICE_PAGEABLE_MEMORY_ACCESS = 65,
  HIPMM_HIP_DEVICE_MEMORY_POOLS = 88,
  HIPMM_HIP_DEVICE_VIRTUAL_MEMORY = 89 /* since 5.3 */
};

/* The HIP API of the runtime in use, without the prefix "hip". Each function returns a hipError_t as int. A function
 * that the runtime lacks is NULL: create must test it, and fail with HIPMM_E_NOT_SUPPORTED and the function's name.
 * Signatures are HIP's, except where HIP's releases differ in a struct or a number: there the core adapts, and the
 * comment says so. A call that a graph capture in another thread forbids (hipStreamCaptureModeGlobal) is made in the
 * relaxed mode, which disturbs neither. The table is constant and lives until the process exits. Thread-safe.
 *
 * Waiting for a device ends every graph capture on it, in any thread. So DeviceSynchronize does not wait while the current
 * device has a captured stream that hipmm created, that the program retained (hipmm_stream_retain()), or that the default
 * stream waits for. It then returns HIPMM_HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED, for which refuse_hip() returns
 * HIPMM_E_STATE. The memory is still in use then: keep it. StreamSynchronize and StreamQuery return it for a stream that
 * is captured. The core does not hold back EventRecord and StreamWaitEvent: ask hipmm_stream_is_captured() before them. */
struct hipmm_hip {
  size_t struct_size;

  int (*GetDeviceCount)(int *count);
  int (*GetDevice)(int *device);
  int (*SetDevice)(int device);
  int (*DeviceGetAttribute)(int *value, int attribute, int device);
  int (*DeviceGetName)(char *name, int length, int device);
  int (*DeviceSynchronize)(void);
  int (*MemGetInfo)(size_t *free_bytes, size_t *total_bytes);
  int (*RuntimeGetVersion)(int *version);
  int (*GetLastError)(void);
  const char *(*GetErrorName)(int code);
  const char *(*GetErrorString)(int code);

  int (*Malloc)(void **ptr, size_t bytes);
  int (*Free)(void *ptr);
  int (*MallocManaged)(void **ptr, size_t bytes, unsigned flags);
  int (*HostMalloc)(void **ptr, size_t bytes, unsigned flags);
  int (*HostFree)(void *ptr);
  int (*MemAdvise)(const void *ptr, size_t bytes, int advice, int device);
  int (*MemPrefetchAsync)(const void *ptr, size_t bytes, int device, hipmm_stream_t stream);

  int (*Memcpy)(void *to, const void *from, size_t bytes, int kind);
  int (*MemcpyAsync)(void *to, const void *from, size_t bytes, int kind, hipmm_stream_t stream);
  int (*MemsetAsync)(void *ptr, int value, size_t bytes, hipmm_stream_t stream);
  int (*LaunchHostFunc)(hipmm_stream_t stream, void (*function)(void *), void *argument);

  int (*StreamCreateWithFlags)(hipmm_stream_t *stream, unsigned flags);
  int (*StreamDestroy)(hipmm_stream_t stream);
  int (*StreamSynchronize)(hipmm_stream_t stream);
  int (*StreamQuery)(hipmm_stream_t stream);
  int (*StreamWaitEvent)(hipmm_stream_t stream, hipmm_hip_event_t event, unsigned flags);
  int (*StreamGetId)(hipmm_stream_t stream, unsigned long long *id);

  int (*EventCreateWithFlags)(hipmm_hip_event_t *event, unsigned flags);
  int (*EventDestroy)(hipmm_hip_event_t event);
  int (*EventRecord)(hipmm_hip_event_t event, hipmm_stream_t stream);
  int (*EventQuery)(hipmm_hip_event_t event);
  int (*EventSynchronize)(hipmm_hip_event_t event);

  int (*MallocAsync)(void **ptr, size_t bytes, hipmm_stream_t stream);
  int (*FreeAsync)(void *ptr, hipmm_stream_t stream);
  int (*MallocFromPoolAsync)(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream);
  int (*MemPoolCreate)(hipmm_hip_mempool_t *pool, int device, int handle_type); /* adapted: the props struct grew */
  int (*MemPoolDestroy)(hipmm_hip_mempool_t pool);
  int (*MemPoolSetAttribute)(hipmm_hip_mempool_t pool, int attribute, void *value);
  int (*MemPoolGetAttribute)(hipmm_hip_mempool_t pool, int attribute, void *value);
  int (*MemPoolTrimTo)(hipmm_hip_mempool_t pool, size_t keep_bytes);
  int (*DeviceGetDefaultMemPool)(hipmm_hip_mempool_t *pool, int device);

  /* Virtual memory. Adapted: the props struct changed its layout after HIP 5.2, so the core writes it (memory of
   * `device`, no export). MemSetAccess gives `device` read and write access. */
  int (*MemGetAllocationGranularity)(size_t *bytes, int device);
  int (*MemAddressReserve)(void **ptr, size_t bytes, size_t alignment);
  int (*MemAddressFree)(void *ptr, size_t bytes);
  int (*MemCreate)(hipmm_hip_chunk_t *handle, size_t bytes, int device);
  int (*MemRelease)(hipmm_hip_chunk_t handle);
  int (*MemMap)(void *ptr, size_t bytes, hipmm_hip_chunk_t handle);
  int (*MemUnmap)(void *ptr, size_t bytes);
  int (*MemSetAccess)(void *ptr, size_t bytes, int device);

  /* Pools: the current one of a device, the devices with access, and sharing with other processes. Adapted: one device
   * at a time; the handle is always a file descriptor, which the caller of import still owns. Import binds to the
   * current device (in older ROCm to device 0). MemPoolCreateManaged, for managed memory (hipMemAllocationTypeManaged,
   * since 7.2), returns HIPMM_HIP_ERROR_NOT_SUPPORTED if hipMemPoolCreate does not know that type. */
  int (*DeviceGetMemPool)(hipmm_hip_mempool_t *pool, int device);
  int (*DeviceSetMemPool)(int device, hipmm_hip_mempool_t pool);
  int (*MemPoolSetAccess)(hipmm_hip_mempool_t pool, int device, int access);
  int (*MemPoolGetAccess)(int *access, hipmm_hip_mempool_t pool, int device);
  int (*MemPoolCreateManaged)(hipmm_hip_mempool_t *pool, int device);
  int (*MemPoolExport)(int *fd, hipmm_hip_mempool_t pool); /* hipMemPoolExportToShareableHandle */
  int (*MemPoolImport)(hipmm_hip_mempool_t *pool, int fd); /* hipMemPoolImportFromShareableHandle */
  int (*MemPoolExportPointer)(void *data, void *ptr);      /* data: HIPMM_HIP_POINTER_BYTES */
  int (*MemPoolImportPointer)(void **ptr, hipmm_hip_mempool_t pool, void *data);

  /* Copies between two devices, through the host if neither reaches the other's memory; and the device of a live stream
   * (since 5.7). */
  int (*MemcpyPeerAsync)(void *to, int to_device, const void *from, int from_device, size_t bytes,
                         hipmm_stream_t stream);
  int (*StreamGetDevice)(hipmm_stream_t stream, int *device);
  int (*DriverGetVersion)(int *version);

  /* Whether `device` can reach the memory of `peer`; and enables the current device to do so, for memory of
   * hipMalloc. */
  int (*DeviceCanAccessPeer)(int *can_access, int device, int peer);
  int (*DeviceEnablePeerAccess)(int peer, unsigned flags);

  const char *runtime; /* "amd", "nvidia", "software", or the path that the graph names */

  /* The hipStreamCaptureStatus of the stream: 0 if it is not in a graph capture. */
  int (*StreamIsCapturing)(hipmm_stream_t stream, int *status);

  /* The start and the size of the runtime's allocation that contains `ptr`. */
  int (*MemGetAddressRange)(void **start, size_t *bytes, void *ptr);

  /* Priorities of streams: a lower number is served first; the greatest priority is the lowest number. */
  int (*StreamCreateWithPriority)(hipmm_stream_t *stream, unsigned flags, int priority);
  int (*DeviceGetStreamPriorityRange)(int *least, int *greatest);

  /* Virtual memory between processes. Adapted: MemCreateShared is MemCreate for memory that can be exported; the handle
   * is always a file descriptor, which the caller of export gets, and the caller of import still owns. Import gives memory
   * of the current device. */
  int (*MemCreateShared)(hipmm_hip_chunk_t *handle, size_t bytes, int device);
  int (*MemExport)(int *fd, hipmm_hip_chunk_t handle); /* hipMemExportToShareableHandle */
  int (*MemImport)(hipmm_hip_chunk_t *handle, int fd); /* hipMemImportFromShareableHandle */

  /* Pins host memory of the program, so that its copies are as fast as those of HostMalloc's memory. */
  int (*HostRegister)(void *ptr, size_t bytes, unsigned flags);
  int (*HostUnregister)(void *ptr);

  int (*DeviceGetUuid)(unsigned char uuid[16], int device);

  /* As MemPoolCreateManaged, for pinned host memory on a NUMA node (below 0: where the driver places it): CUDA has such pools
   * since 12.6. No device has access to one yet. */
  int (*MemPoolCreateHost)(hipmm_hip_mempool_t *pool, int numa_node);

  /* As MemSetAccess, for reading only. */
  int (*MemSetAccessRead)(void *ptr, size_t bytes, int device);
};

/* Whether the stream, which must be live, is in a graph capture, so that its work runs at each launch of the graph.
 * Until the capture ends, waiting for the stream or the device is impossible, and so is making the stream wait for work
 * outside of the graph: each attempt ends the capture. */
static inline int hipmm_stream_is_captured(const struct hipmm_hip *hip, hipmm_stream_t stream)
{
  int status = 0, code = hip->StreamIsCapturing ? hip->StreamIsCapturing(stream, &status) : 0;
  if (code) hip->GetLastError();
  /* The default stream returns this error while a stream is captured that waits for it. */
  return code == HIPMM_HIP_ERROR_STREAM_CAPTURE_IMPLICIT || (!code && status);
}

/* ---- The core's services --------------------------------------------------------------------------------------- */

/* How far a resource goes to find memory. Each level goes further than the one before. */
enum hipmm_reclaim_level {
  HIPMM_RECLAIM_IDLE = 1, /* takes, or gives, idle memory */
  HIPMM_RECLAIM_WAIT = 2, /* waits for work too */
  HIPMM_RECLAIM_ALL = 3,  /* asks other upstreams and the program too, and reports the failure */
  HIPMM_RECLAIM_FORCE_32BIT = 0x7fffffff
};

/* A resource's question to the program about an allocation that has found no memory. `self` is the resource's. The
 * thread holds no lock of a resource then, unless a function of the program has made the call while an op called it. */
struct hipmm_question {
  /* Calls the program's function. Nonzero: the allocation is to be tried again. */
  int (*ask)(void *self, size_t bytes);
  /* After the last yes: the status of the call that was made again. */
  void (*tried)(void *self, enum hipmm_status status);
};

/* The core's services for one resource: passed to create, valid until destroy returns. All functions are thread-safe
 * and take the table as their first argument. */
struct hipmm_services {
  size_t struct_size;
  const char *name;            /* of this resource in the graph */
  int32_t device;              /* the device that it serves */
  const struct hipmm_hip *hip; /* the runtime */

  /* Reports a failure and returns `status`, for `return services->fail(…)`. The core adds file, JSON path and name.
   * `option` is the name of this resource's invalid option, or NULL. The message says what is wrong, what is
   * allowed and what to do, without the resource's name. Not for the allocation path: it formats at once. */
  enum hipmm_status (*fail)(const struct hipmm_services *services, enum hipmm_status status, const char *option,
                            const char *format, ...) HIPMM_PRINTF(4, 5);

  /* The same for the allocation path: stores the numbers only; the message is formatted when the caller asks for it.
   * `text` is a string constant in which {0}, {1}, {2} stand for the numbers, {0:bytes} for a size with its unit,
   * {0:hex} for a pointer. */
  enum hipmm_status (*refuse)(const struct hipmm_services *services, enum hipmm_status status, const char *text,
                              uint64_t first, uint64_t second, uint64_t third);

  /* The same for a HIP call that returned `code` != 0 when asked for `bytes` (0 if it has no size). Clears HIP's
   * sticky error, and returns the status that fits: HIPMM_E_OUT_OF_MEMORY, _NOT_SUPPORTED, _NO_DEVICE or _HIP. */
  enum hipmm_status (*refuse_hip)(const struct hipmm_services *services, const char *call, int code, size_t bytes);

  /* Writes a line to the debug log, under this resource's name. */
  void (*log)(const struct hipmm_services *services, enum hipmm_log_level level, const char *format, ...)
      HIPMM_PRINTF(3, 4);

  /* Host memory for the plugin's own use, zeroed, never from the application's malloc (which may be interposed on the
   * allocation path); NULL when there is none. For few, large blocks. Free with the same size. */
  void *(*host_allocate)(const struct hipmm_services *services, size_t bytes);
  void (*host_free)(const struct hipmm_services *services, void *ptr, size_t bytes);

  /* enter makes this resource's device current, for HIP calls that depend on it, and returns the previous device; leave
   * restores it. Sources need it around every HIP call; so do events. It costs a driver call or two, so it does not
   * belong on a path without HIP calls. */
  int (*enter_device)(const struct hipmm_services *services);
  void (*leave_device)(const struct hipmm_services *services, int previous);

  /* The block map of the blocks that a source holds from the runtime. track adds a block (HIPMM_E_OUT_OF_MEMORY if the
   * map cannot grow: then free the block). untrack removes it and writes its size: HIPMM_E_POINTER if `ptr` is not in
   * the map, HIPMM_E_SIZE if `bytes` is neither 0 nor its size. Call untrack before the runtime's free, since another
   * thread may get the same address at once. lookup finds a block without removing it. untrack_any removes any one
   * block, so that destroy can free what the application left: HIPMM_E_POINTER if there is none. */
  enum hipmm_status (*track)(const struct hipmm_services *services, void *ptr, size_t bytes);
  enum hipmm_status (*untrack)(const struct hipmm_services *services, void *ptr, size_t bytes, size_t *bytes_out);
  enum hipmm_status (*lookup)(const struct hipmm_services *services, const void *ptr, struct hipmm_block *block_out);
  enum hipmm_status (*untrack_any)(const struct hipmm_services *services, struct hipmm_block *block_out);

  /* Changes the number of bytes that the stack holds. For sources whose driver holds more than they requested (a
   * driver's pool), and for mapped memory without pointers. track and untrack count by themselves. */
  void (*count_held)(const struct hipmm_services *services, int64_t bytes);

  /* Asks the resources below this one for the live block that starts at `ptr` (see ops->find): each of them once, and
   * each before its upstreams, since it may divide their blocks. */
  enum hipmm_status (*find_below)(const struct hipmm_services *services, const void *ptr,
                                  struct hipmm_block *block_out);

  /* For a resource that fails since an upstream failed, which has reported `status`: appends what this resource knows
   * to the upstream's message, as refuse would report it, with a fourth number, {3}. Returns `status`. The first 4
   * resources are kept, the nearest to the source first. */
  enum hipmm_status (*explain)(const struct hipmm_services *services, enum hipmm_status status, const char *text,
                               uint64_t first, uint64_t second, uint64_t third, uint64_t fourth);

  /* As find_below, but asks one upstream, or a resource that an option names, and the resources below it. For a
   * resource with several upstreams that must know which of them owns a block. */
  enum hipmm_status (*find_in)(const struct hipmm_services *services, const struct hipmm_resource *resource,
                               const void *ptr, struct hipmm_block *block_out);

  /* Whether a live block of `resource` may be a block that `other` got from it, or from a resource below it, to divide.
   * Then it must be decided to which of the two a pointer belongs. Both are upstreams, or named by options. */
  int (*may_cut_up)(const struct hipmm_services *services, const struct hipmm_resource *other,
                    const struct hipmm_resource *resource);

  /* Whether a resource below this one reuses freed memory: a sub-allocator, or a source with HIPMM_PLUGIN_KEEPS_MEMORY.
   * Then what HIP was told about a block also holds for the next block at its address. */
  int (*is_kept_below)(const struct hipmm_services *services);

  /* Nonzero if the program orders its copies between devices itself, as PyTorch does with events. If 0, the program may
   * rely on the order that runtimes keep only for memory of hipMalloc: a copy on a default stream waits for the work
   * of the default stream of the device whose memory it reads. Set when the resource is made, and never changed. */
  int32_t copies_are_ordered;

  /* Nonzero if a device's work accesses this resource's memory only after a stack of that device was built, as PyTorch's
   * does, which allocates on a device before it works there. ops->grant_access then names each such device. If 0, the
   * work of any device may access the memory at any time. Set when the resource is made, and never changed. */
  int32_t devices_are_announced;

  /* Calls `changed` at once, with 0 bytes and no name; and then until unwatch whenever a source below this resource takes
   * `bytes` more from the runtime, or gives them back (negative). `changed` gets the source's name, and the bytes that
   * the sources of its device hold then. `placed`, unless it is NULL, is called whenever memory that the resource
   * `holder` below has is at `ptr` from now on, or no longer (negative `bytes`): a block of a source, or what a pool has
   * mapped. The name lasts as long as the watch. visit_places tells where memory is when the watch begins. Both may be
   * called under locks of resources below, and call no function of hipmm. One watch for each resource. unwatch waits until
   * no thread is in them. HIPMM_E_OUT_OF_MEMORY without host memory. */
  enum hipmm_status (*watch_held)(const struct hipmm_services *services,
                                  void (*changed)(void *closure, const char *source, int64_t bytes, int64_t held_bytes),
                                  void (*placed)(void *closure, const char *holder, const void *ptr, int64_t bytes),
                                  void *closure);
  void (*unwatch_held)(const struct hipmm_services *services);

  /* How far this op may go to find memory. `status` is what an upstream's allocate has just returned; HIPMM_OK in trim.
   * When the runtime has no memory left, the core asks the device's other resources for idle memory, where the call
   * entered hipmm, and repeats the call. A resource that does not ask for its level goes all the way. Costs some
   * instructions, so it is for failures. See hipmm_may_wait() and hipmm_is_tried_again(). */
  enum hipmm_reclaim_level (*reclaim_level)(const struct hipmm_services *services, enum hipmm_status status);

  /* Called around each function of the program that may call hipmm. Resources above may hold locks then. So the core
   * asks no other resource for memory that the function allocates, and refuses waits (check_wait). */
  void (*enter_program)(const struct hipmm_services *services);
  void (*leave_program)(const struct hipmm_services *services);

  /* For allocate, create and reconfigure, if an upstream's allocate of `bytes` has found no memory (`status`) and
   * hipmm_is_tried_again() says no. The resource returns the result of this function. HIPMM_CALL_AGAIN: the core calls
   * question->ask where the call entered hipmm, and repeats the call, whether the answer is yes or no. `status`: the
   * program has answered no, and the resource fails. `question` is constant. */
  enum hipmm_status (*ask_program)(const struct hipmm_services *services, enum hipmm_status status,
                                   const struct hipmm_question *question, size_t bytes);

  /* Called before an op waits for a lock that another thread holds, and that is held around calls of upstreams.
   * HIPMM_E_STATE: the op returns it and does not wait. This thread is in a function of the program, below a resource
   * whose lock it holds; the other thread may be in the same situation, and wait for this one. */
  enum hipmm_status (*check_wait)(const struct hipmm_services *services);

  /* For a resource that keeps the call stacks of allocations. With `text` NULL, in create and reconfigure: says that it
   * wants those of one allocation in `sample` bytes, at most 4 GiB; 0: of all. Else, in an op: negative if the stack of
   * an allocation of `bytes` is not wanted, which is decided at random, in proportion to `bytes`, and never for 1 MiB or
   * more. Otherwise writes the frames of Python of the call, innermost first, and returns the text's length, which is 0
   * if the thread does not run Python. A line is "NAME from FILE:LINE\n". Frames for which there is no room are left
   * out. May be called under locks: it waits for nobody, and runs no code of the program. */
  int64_t (*call_site)(const struct hipmm_services *services, size_t bytes, uint64_t sample, char *text,
                       size_t text_bytes);

  /* For a resource that records allocations: the tags of the calling thread (hipmm_tag_push()), the outermost first, each
   * with a newline; "" without one, and at most HIPMM_MOST_TAG_BYTES. Never NULL; valid during the op. While `*tags_used`,
   * read atomically, is 0, no thread of the process has had a tag, and the call can be spared: see hipmm_tags(). */
  const char *(*tags)(const struct hipmm_services *services);
  const uint32_t *tags_used;

  /* For a resource that maps chunks of its upstream: the memory of a chunk is at `ptr` from now on, or no longer (negative
   * `bytes`). A chunk is at one place. Costs a load while nobody watches; track and untrack tell the same of blocks. */
  void (*place)(const struct hipmm_services *services, const void *ptr, int64_t bytes);

  /* Calls `visitor` for the places of all memory that the resources below hold, except memory whose addresses nobody told
   * (count_held), and blocks of a source with HIPMM_PLUGIN_RECOUNTS. What changes meanwhile may be there or not; the watch
   * is told of it. `visitor` calls no function of hipmm. HIPMM_E_STATE, and a part was visited: see check_wait. */
  enum hipmm_status (*visit_places)(const struct hipmm_services *services,
                                    void (*visitor)(void *closure, const char *holder, const void *ptr, int64_t bytes),
                                    void *closure);
};

#define HIPMM_MOST_TAG_BYTES 255

/* The calling thread's tags, as services->tags() gives them, for the price of a load until the process has one. */
static inline const char *hipmm_tags(const struct hipmm_services *services)
{
  return __atomic_load_n(services->tags_used, __ATOMIC_RELAXED) ? services->tags(services) : "";
}

/* For a resource that has free memory which work may still use: whether to wait for the work. */
static inline int hipmm_may_wait(const struct hipmm_services *services, enum hipmm_status status)
{
  return services->reclaim_level(services, status) != HIPMM_RECLAIM_IDLE;
}

/* For a resource that would serve a failed allocation in another way, or report it: whether the core repeats the call.
 * Then the resource returns `status` and does nothing. */
static inline int hipmm_is_tried_again(const struct hipmm_services *services, enum hipmm_status status)
{
  return services->reclaim_level(services, status) != HIPMM_RECLAIM_ALL;
}

/* ---- Options --------------------------------------------------------------------------------------------------- */

enum hipmm_option_type {
  HIPMM_OPTION_BOOL = 1, /* true or false                          → uint32_t */
  HIPMM_OPTION_INTEGER,  /* 42                                     → int64_t */
  HIPMM_OPTION_BYTES,    /* 1048576, "512MiB", "2GB", "50%"        → uint64_t; a percentage only with the flag */
  HIPMM_OPTION_RATIO,    /* 0.5                                    → double */
  HIPMM_OPTION_DURATION, /* "10ms", "1.5s"                         → int64_t, nanoseconds */
  HIPMM_OPTION_ENUM,     /* one of `choices`                       → uint32_t, its index */
  HIPMM_OPTION_STRING,   /* text                                   → const char *, NULL when not given */
  HIPMM_OPTION_STRINGS,  /* ["a", "b"]                             → struct hipmm_strings */
  HIPMM_OPTION_LIST,     /* [{…}, {…}], rows of `fields`           → struct hipmm_list */
  HIPMM_OPTION_RESOURCE, /* the name of another resource           → struct hipmm_resource *, NULL when not given */
  HIPMM_OPTION_OBJECT,   /* the name under which the program registered an object (hipmm_allocator_register() and the
                            like), of the kind that `unit` names ("allocator", "failure", "hooks", "region", "mempool")
                                                                   → const void *, the registered struct (a copy that
                                                                     lives as the options do); NULL when not given */
  HIPMM_OPTION_FORCE_32BIT = 0x7fffffff
};

enum {
  HIPMM_OPTION_REQUIRED = 1, /* must be given; initial is NULL */
  HIPMM_OPTION_PERCENT = 2,  /* BYTES may be "50%" of the device memory free at creation, "50% of total", "share" */

  /* May be set while the resource is in use: ops->reconfigure. Not for options that name resources, except with
   * ADDS_RESOURCES, nor for the fields of a list. */
  HIPMM_OPTION_RELOADABLE = 4,

  /* With RELOADABLE: a new value may name further resources, which may be used like upstreams when ops->reconfigure is
   * called. The op refuses to drop one that may be in use. */
  HIPMM_OPTION_ADDS_RESOURCES = 8
};

/* The value of a BYTES option without a value and without a default, and of its keyword (see choices). */
#define HIPMM_UNLIMITED UINT64_MAX

/* The values of STRINGS and of LIST options. Both never grow. */
struct hipmm_strings {
  size_t count;
  const char *const *items;
};

struct hipmm_list {
  size_t count;
  void *items; /* array of the plugin's own struct, field_bytes each */
};

/* A row of a plugin's option table. Its size is in the descriptor: option_bytes.
 *
 * Each text of a descriptor and of its tables is a constant, and one line of UTF-8, since terminals show it and JSON
 * contains it. It has no control characters (no tabs either) and no invisible marks such as U+202E. Only `initial` of
 * STRING and STRINGS may have any characters of UTF-8. hipmm refuses a plugin with other texts. */
struct hipmm_option {
  const char *name;    /* in the file; snake_case, the name of the C field too */
  uint32_t type;       /* enum hipmm_option_type */
  uint32_t flags;      /* HIPMM_OPTION_… */
  size_t offset;       /* of the field in the plugin's option struct */
  const char *initial; /* the default, as a user would write it, without quotes; NULL: none */
  const char *unit;    /* of numbers: "bytes", "blocks"; NULL: none */
  const char *doc;     /* one line, a sentence without its full stop */

  const char *minimum, *maximum; /* bounds, as a user would write them; NULL: none */
  const char *at_least;          /* another BYTES option of this table that must not be larger; NULL: none */

  /* ENUM: the words. BYTES: one word that means HIPMM_UNLIMITED. NULL-terminated. */
  const char *const *choices;

  /* LIST: the table of each row, and the size of the struct that it fills. */
  const struct hipmm_option *fields;
  uint32_t n_fields;
  uint32_t field_bytes;

  /* STRING: the environment variable that the plugin reads where the option is not given; NULL: none. */
  const char *variable;
};

/* ---- The descriptor -------------------------------------------------------------------------------------------- */

/* What validate may ask and report. Valid during the call. An option is named as in the file: "alignment", or a value
 * in a list "bins/1/size". A function returns 0 or NULL for what the caller does not know. */
struct hipmm_validation {
  size_t struct_size;

  /* Reports an error, or a warning: something that is allowed, but surely not meant. `option` says where; NULL: the
   * resource as a whole. The message says what is wrong, what is allowed and what to do, without the resource's
   * name. */
  void (*error)(const struct hipmm_validation *validation, const char *option, const char *format, ...)
      HIPMM_PRINTF(3, 4);
  void (*warn)(const struct hipmm_validation *validation, const char *option, const char *format, ...)
      HIPMM_PRINTF(3, 4);

  /* Nonzero if the option is a percentage of free memory that is not known yet: it is 0 in `options` then. */
  int (*is_unknown)(const struct hipmm_validation *validation, const char *option);

  /* The name of the upstream at `index`; NULL behind the last. */
  const char *(*upstream)(const struct hipmm_validation *validation, size_t index);

  /* Nonzero if all sources below have HIPMM_PLUGIN_DEVICE_MEMORY. */
  int (*is_device_memory)(const struct hipmm_validation *validation);

  /* The size in option `other_option` of the resource that `option` names. Nonzero if it is known. */
  int (*bytes_of)(const struct hipmm_validation *validation, const char *option, const char *other_option,
                  uint64_t *bytes_out);

  /* The name of an earlier resource of this type with the same value of `option`, or with none if this resource has
   * none, in a stack of one device that has both. */
  const char *(*same_as)(const struct hipmm_validation *validation, const char *option);

  /* Nonzero if a source of the resource that `option` names has HIPMM_PLUGIN_DEVICE_MEMORY. */
  int (*has_device_memory)(const struct hipmm_validation *validation, const char *option);
};

enum hipmm_plugin_role {
  HIPMM_ROLE_SOURCE = 1,    /* a leaf: allocates from HIP or the host */
  HIPMM_ROLE_SUB_ALLOCATOR, /* divides the blocks of its upstream */
  HIPMM_ROLE_ADAPTOR,       /* forwards to its upstream and adds something */
  HIPMM_ROLE_RUNTIME,       /* exports the HIP API itself; not a resource */
  HIPMM_ROLE_FORCE_32BIT = 0x7fffffff
};

enum {
  HIPMM_PLUGIN_NOT_THREAD_SAFE = 1, /* the core serialises its ops */
  HIPMM_PLUGIN_HOST_MEMORY = 2,     /* a source: the host may read and write the memory that it gives */
  HIPMM_PLUGIN_HANDS_ON = 4,       /* a pointer that ops->find does not know may be an upstream's, returned unchanged */
  HIPMM_PLUGIN_KEEPS_MEMORY = 8,   /* a source: it may reuse freed memory without giving it back to the runtime */
  HIPMM_PLUGIN_DEVICE_MEMORY = 16, /* a source: its memory is never managed, and the host cannot access it */
  HIPMM_PLUGIN_HOST_ALONE = 32,    /* a source: kernels of a device may be unable to use the memory that it gives */
  HIPMM_PLUGIN_FREE_WAITS = 64,    /* a source: a free waits for its stream; refused in a capture of the stream */
  HIPMM_PLUGIN_ACCESSES_MEMORY =
      128, /* reads or writes its upstream's blocks by itself, so that they cannot be suspended */
  HIPMM_PLUGIN_RECOUNTS =
      256, /* a source whose driver gives memory back by itself: a query of the value reserved_bytes counts that
              (count_held). The core makes the query before it tells what is held */
  HIPMM_PLUGIN_UNDIVIDED =
      512 /* a source: no sub-allocator, and no resource that accesses memory, may stand above it */
};

/* A value that a resource offers to query(), or an action that it offers to perform(). Its size is in the descriptor:
 * feature_bytes. Its texts are as those of struct hipmm_option. */
struct hipmm_feature {
  const char *name; /* snake_case */
  const char *unit; /* of a value: "bytes", "blocks"; NULL for an action */
  const char *doc;  /* one line, a sentence without its full stop */
};

/* Its texts are as those of struct hipmm_option. */
struct hipmm_plugin {
  uint32_t abi_version;   /* HIPMM_PLUGIN_ABI; always the first four bytes */
  uint32_t struct_size;   /* sizeof(struct hipmm_plugin) */
  uint32_t option_bytes;  /* sizeof(struct hipmm_option), so that rows may grow */
  uint32_t feature_bytes; /* sizeof(struct hipmm_feature) */

  const char *type;    /* the name in the graph; the file is TYPE.so */
  const char *version; /* the plugin's own */
  const char *doc;     /* one line */
  uint32_t role;       /* enum hipmm_plugin_role */
  uint32_t flags;
  uint64_t required_features; /* an unknown bit makes hipmm refuse the plugin; none is defined yet */

  uint32_t min_upstreams, max_upstreams; /* of the key "upstream": 0 for sources, 1 for most others */

  const struct hipmm_option *options;
  uint32_t n_options;
  uint32_t unused;      /* 0 */
  size_t options_bytes; /* size of the plugin's own option struct; 0 if it has none */

  const struct hipmm_feature *values;
  const struct hipmm_feature *actions;
  uint32_t n_values, n_actions;

  const struct hipmm_ops *ops; /* NULL for a runtime */

  /* Creates an instance. `options` is the plugin's option struct, filled and checked; the struct, all that it points to
   * and `upstreams` live until destroy returns. The resource's device is current. After a failure nothing is left
   * behind, and services->fail has reported the reason. A runtime is configured here before its first HIP call, with no
   * upstreams, services->hip NULL and services->device -1. */
  enum hipmm_status (*create)(const struct hipmm_services *services, const void *options,
                              struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out);

  /* Frees everything to the upstreams. The resource's device is current, and no op is under way. NULL for a runtime. */
  void (*destroy)(void *self);

  /* Optional: checks what the option table cannot say, such as the order of a list or the format of a text, and reports
   * every error. `options` is the plugin's option struct, filled and checked by the table; options that name resources or
   * registered objects are not to be followed. Called with no device and no instance for `hipmm check`, and before
   * create and reconfigure, which get only options that validate found no error in. Any thread may call it. */
  void (*validate)(const struct hipmm_validation *validation, const void *options);
};

/* The fields that every descriptor begins with, in their order, so that C++20 takes them too. */
#define HIPMM_PLUGIN_HEAD                                                      \
  .abi_version = HIPMM_PLUGIN_ABI, .struct_size = sizeof(struct hipmm_plugin), \
  .option_bytes = sizeof(struct hipmm_option), .feature_bytes = sizeof(struct hipmm_feature)

#ifdef __cplusplus
}
#endif
#endif
