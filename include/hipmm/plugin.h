/* SPDX-License-Identifier: MIT */
/* hipmm/plugin.h: the interface between hipmm and the plugins that bring resource types.
 *
 * A plugin is a shared object TYPE.so that exports one constant, the descriptor, and imports nothing from libhipmm:
 *
 *     const struct hipmm_plugin mine_LTX_hipmm_plugin = {HIPMM_PLUGIN_HEAD, .type = "mine", …};
 *
 * (the name is the file's stem, then _LTX_hipmm_plugin; a third party may also export plain `hipmm_plugin`). The
 * descriptor is pure data: it, its tables and their texts are constants of loaded objects, which is checked, and not
 * memory of the heap. Nothing of a plugin runs before `create`. Whatever the descriptor says (options with
 * their defaults, ranges and words of explanation, values, actions) is the documentation: `hipmm describe`, the JSON
 * Schema, validation and error messages are all derived from it.
 *
 * Growth: structs that cross the border only grow at their end and say how large they are. A plugin built against an
 * older plugin.h of the same HIPMM_PLUGIN_ABI works for ever.
 */
#ifndef HIPMM_PLUGIN_H
#define HIPMM_PLUGIN_H

#include <hipmm/hipmm.h>
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIPMM_PLUGIN_ABI 1

/* Every resource aligns to at least this, as RMM and HIP do. */
#define HIPMM_ALIGNMENT 256

#if defined(__GNUC__)
#define HIPMM_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define HIPMM_EXPORT              __attribute__((visibility("default")))
#else
#define HIPMM_PRINTF(text, first)
#define HIPMM_EXPORT
#endif

/* ---- The resource ---------------------------------------------------------------------------------------------- */

/* A block of memory that a resource gave out. */
struct hipmm_block {
  void *ptr;    /* as allocate gave it */
  size_t bytes; /* as requested of allocate */
};

/* A piece of what a resource holds, for introspection. */
enum hipmm_extent_state {
  HIPMM_EXTENT_LIVE = 1, /* the application's */
  HIPMM_EXTENT_FREE,     /* free on every stream */
  HIPMM_EXTENT_PENDING,  /* free on `stream`; others must wait for its work */
  HIPMM_EXTENT_CACHED    /* free, kept for one thread */
};

/* What else is to be said of it. */
enum {
  HIPMM_EXTENT_BARRIER =
      1, /* never joined with what lies before it, even where that ends here: it begins what the upstream
                              gave in one piece, follows a gap, or blocks of this resource are never joined */
  HIPMM_EXTENT_MOVABLE =
      2 /* free memory that can be put under other addresses: all such memory together serves a request
                              as if it were in one piece */
};

struct hipmm_extent {
  const void *ptr;
  size_t bytes;       /* of a live block: as requested */
  uint32_t state;     /* enum hipmm_extent_state */
  uint32_t flags;     /* HIPMM_EXTENT_… */
  hipStream_t stream; /* of a live block: that it was allocated for; of a pending or cached one: that it was freed on */
};

/* Virtual memory: physical pieces that can be put under any address of a reserved range, and moved without copying.
 * Offered by sources that have it; a sub-allocator directly above may use it in place of allocate. All sizes are
 * multiples of the granularity. Thread-safe. */
struct hipmm_mapping {
  size_t struct_size;

  /* The smallest piece. HIPMM_E_NOT_SUPPORTED where this runtime or device has no virtual memory. */
  enum hipmm_status (*granularity)(void *self, size_t *bytes_out);

  /* Address space without memory. */
  enum hipmm_status (*reserve)(void *self, size_t bytes, void **address_out);
  enum hipmm_status (*unreserve)(void *self, void *address, size_t bytes);

  /* Physical memory without an address. Counted as held. */
  enum hipmm_status (*create)(void *self, size_t bytes, void **piece_out);
  enum hipmm_status (*destroy)(void *self, void *piece, size_t bytes);

  /* Puts a whole piece at `address`, readable and writable by the device and by every other device of the process that
   * can reach it; takes it away again. No work may use the address during unmap. */
  enum hipmm_status (*map)(void *self, void *address, size_t bytes, void *piece);
  enum hipmm_status (*unmap)(void *self, void *address, size_t bytes);

  /* Nonzero if a piece may be mapped at several addresses at once, where later work finds what earlier work wrote,
   * whichever address each uses. NULL: no. */
  int (*may_alias)(void *self);

  /* Nonzero if map takes tens of microseconds, as a driver's does, so that who moves pieces had better have fewer and
   * larger ones, at some cost in memory. NULL: no. */
  int (*is_slow)(void *self);

  /* Why one should do without all of this unless the user asks for it, as half a sentence that lives for ever; NULL if
   * nothing speaks against it. Left NULL: nothing does. */
  const char *(*discouraged_reason)(void *self);
};

/* Memory between processes. Offered by sources over a driver's pool (hipmm/share.h). Thread-safe. */
struct hipmm_pool_pointer;

struct hipmm_sharing {
  size_t struct_size;

  /* A file descriptor of the pool, the caller's to close. */
  enum hipmm_status (*export_fd)(void *self, int *fd_out);

  /* What another process needs to know of the live block at `ptr`. */
  enum hipmm_status (*export_pointer)(void *self, const void *ptr, struct hipmm_pool_pointer *pointer_out);

  /* The memory that another process's pointer stands for, as a live block of this resource. */
  enum hipmm_status (*import_pointer)(void *self, const struct hipmm_pool_pointer *pointer, void **ptr_out);
};

/* What a resource does. `self` is what create gave. Every op is called from any thread at any time between create and
 * destroy, unless the descriptor says HIPMM_PLUGIN_NOT_THREAD_SAFE. Left NULL, an optional op is filled in at load.
 * A failing op has reported why through its services, or returns what an upstream returned. */
struct hipmm_ops {
  size_t struct_size;

  /* Required. `alignment` is a power of two, at least HIPMM_ALIGNMENT. Zero bytes: a NULL pointer and success (they
   * are passed down all the same, since adaptors count and log them). Memory is ready for work on `stream`. */
  enum hipmm_status (*allocate)(void *self, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out);

  /* Required. `bytes` is 0 where the caller does not know the size. NULL is no error. A pointer that is not live here
   * is HIPMM_E_POINTER, another size than was allocated HIPMM_E_SIZE: both change nothing. */
  enum hipmm_status (*deallocate)(void *self, void *ptr, size_t bytes, size_t alignment, hipStream_t stream);

  /* Gives idle memory above `keep_bytes` back to the upstreams. The core calls it top down. Default: nothing to do. */
  enum hipmm_status (*trim)(void *self, size_t keep_bytes);

  /* The value in row `index` of the descriptor's values. */
  enum hipmm_status (*query)(void *self, size_t index, int64_t *value_out);

  /* Does the action in row `index` of the descriptor's actions, atomically, and writes what all of the descriptor's
   * values were for it into values_out, in the order of its rows. */
  enum hipmm_status (*perform)(void *self, size_t index, int64_t *values_out);

  /* The live block that starts at `ptr`; HIPMM_E_POINTER if there is none. A resource that hands its upstream's
   * pointers on unchanged leaves it NULL: the core then asks below. With HIPMM_PLUGIN_HANDS_ON the core asks below,
   * too, for pointers of which this resource knows nothing. */
  enum hipmm_status (*find)(void *self, const void *ptr, struct hipmm_block *block_out);

  /* `stream` is about to be destroyed and is still valid: forget it. Default: nothing to do. */
  void (*stream_retire)(void *self, hipStream_t stream);

  /* `stream` lives until it is retired: its handle may be used after the call that gave it. Default: nothing to do. */
  void (*stream_retain)(void *self, hipStream_t stream);

  /* NULL: this type offers no virtual memory. */
  const struct hipmm_mapping *mapping;

  /* The option called `option`, one marked HIPMM_OPTION_RELOADABLE, has a new value: `options` is the plugin's option
   * struct filled and checked again; it replaces the one that create got and lives as that did (the ones before may
   * still be read). Calls for one resource are serialised; other ops go on meanwhile. On failure everything stays as it was. Required if
   * an option is reloadable. */
  enum hipmm_status (*reconfigure)(void *self, const char *option, const void *options);

  /* Calls see for every extent of memory that this resource holds of its upstreams, in the order of addresses where it
   * can. What `see` is shown is consistent within one extent only. `see` calls nothing of hipmm. Default: nothing. */
  enum hipmm_status (*visit)(void *self, void (*see)(void *closure, const struct hipmm_extent *extent), void *closure);

  /* NULL: this type shares nothing with other processes. */
  const struct hipmm_sharing *sharing;

  /* Writes a text for people about the resource's state, such as a list of what is allocated, through `write`, line by
   * line, each without its end. `write` calls nothing of hipmm. NULL: this type has none. */
  enum hipmm_status (*report)(void *self, void (*write)(void *closure, const char *line), void *closure);

  /* Nonzero if `ptr` lies in a block that this resource has from an upstream to cut up, or at least where that block
   * starts. Such a block is live in the upstream, and only this resource may free it: a pointer that ops->find does
   * not know is not looked for below then. Default: 0. */
  int (*covers)(void *self, const void *ptr);
};

/* One kind of object at every depth of a stack. Plugins see their upstreams as these and call them through the
 * functions below; only the core makes them. */
struct hipmm_resource {
  const struct hipmm_ops *ops;
  void *self;
};

static inline enum hipmm_status hipmm_upstream_allocate(struct hipmm_resource *upstream, size_t bytes, size_t alignment,
                                                        hipStream_t stream, void **ptr_out)
{
  return upstream->ops->allocate(upstream->self, bytes, alignment, stream, ptr_out);
}

static inline enum hipmm_status hipmm_upstream_deallocate(struct hipmm_resource *upstream, void *ptr, size_t bytes,
                                                          size_t alignment, hipStream_t stream)
{
  return upstream->ops->deallocate(upstream->self, ptr, bytes, alignment, stream);
}

/* Whether a request failed for want of memory, the device's or below a limit: a smaller one may succeed, or one of
 * another resource, or the same when something has been freed. */
static inline int hipmm_is_out_of_memory(enum hipmm_status status)
{
  return status == HIPMM_E_OUT_OF_MEMORY || status == HIPMM_E_LIMIT;
}

/* ---- The HIP functions ------------------------------------------------------------------------------------------ */

/* HIP's handles, declared as HIP declares them. */
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipMemPoolHandle_t *hipMemPool_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;

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
  HIPMM_HIP_ERROR_STREAM_CAPTURE_IMPLICIT = 906,

  HIPMM_HIP_EVENT_DISABLE_TIMING = 2,
  HIPMM_HIP_STREAM_NON_BLOCKING = 1,
  HIPMM_HIP_HOST_MALLOC_PORTABLE = 1,
  HIPMM_HIP_MEM_ATTACH_GLOBAL = 1,
  HIPMM_HIP_MEMCPY_DEFAULT = 4, /* the addresses tell the direction */

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

/* What HIP writes about a pointer of a pool for other processes: hipMemPoolPtrExportData. */
enum { HIPMM_HIP_POINTER_BYTES = 64 };

/* The device attributes that plugins ask for; HIP has kept these numbers from 5.2 on. */
enum {
  HIPMM_HIP_DEVICE_CONCURRENT_MANAGED_ACCESS = 9,
  HIPMM_HIP_DEVICE_MANAGED_MEMORY = 24,
  HIPMM_HIP_DEVICE_PAGEABLE_MEMORY_ACCESS = 65,
  HIPMM_HIP_DEVICE_MEMORY_POOLS = 88,
  HIPMM_HIP_DEVICE_VIRTUAL_MEMORY = 89 /* since 5.3 */
};

/* The HIP API of the runtime in use, without the prefix "hip". Each returns a hipError_t as int. A function that this
 * runtime lacks is NULL: test in create, and refuse with HIPMM_E_NOT_SUPPORTED and the function's name. Signatures are
 * HIP's, save where HIP's releases differ among themselves in a struct or a number: there the core adapts, and the
 * comment says so. The calls that a capture of a graph elsewhere in the program forbids (hipStreamCaptureModeGlobal)
 * are made as if none were under way, which disturbs neither. The table lives until the process exits. */
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
  int (*MemPrefetchAsync)(const void *ptr, size_t bytes, int device, hipStream_t stream);

  int (*Memcpy)(void *to, const void *from, size_t bytes, int kind);
  int (*MemcpyAsync)(void *to, const void *from, size_t bytes, int kind, hipStream_t stream);
  int (*MemsetAsync)(void *ptr, int value, size_t bytes, hipStream_t stream);
  int (*LaunchHostFunc)(hipStream_t stream, void (*function)(void *), void *argument);

  int (*StreamCreateWithFlags)(hipStream_t *stream, unsigned flags);
  int (*StreamDestroy)(hipStream_t stream);
  int (*StreamSynchronize)(hipStream_t stream);
  int (*StreamQuery)(hipStream_t stream);
  int (*StreamWaitEvent)(hipStream_t stream, hipEvent_t event, unsigned flags);
  int (*StreamGetId)(hipStream_t stream, unsigned long long *id);

  int (*EventCreateWithFlags)(hipEvent_t *event, unsigned flags);
  int (*EventDestroy)(hipEvent_t event);
  int (*EventRecord)(hipEvent_t event, hipStream_t stream);
  int (*EventQuery)(hipEvent_t event);
  int (*EventSynchronize)(hipEvent_t event);

  int (*MallocAsync)(void **ptr, size_t bytes, hipStream_t stream);
  int (*FreeAsync)(void *ptr, hipStream_t stream);
  int (*MallocFromPoolAsync)(void **ptr, size_t bytes, hipMemPool_t pool, hipStream_t stream);
  int (*MemPoolCreate)(hipMemPool_t *pool, int device, int handle_type); /* adapted: the props struct grew */
  int (*MemPoolDestroy)(hipMemPool_t pool);
  int (*MemPoolSetAttribute)(hipMemPool_t pool, int attribute, void *value);
  int (*MemPoolGetAttribute)(hipMemPool_t pool, int attribute, void *value);
  int (*MemPoolTrimTo)(hipMemPool_t pool, size_t keep_bytes);
  int (*DeviceGetDefaultMemPool)(hipMemPool_t *pool, int device);

  /* Virtual memory. Adapted: the props struct changed its layout after HIP 5.2, so the core writes it (memory of
   * `device`, no export). MemSetAccess gives `device` read and write access. */
  int (*MemGetAllocationGranularity)(size_t *bytes, int device);
  int (*MemAddressReserve)(void **ptr, size_t bytes, size_t alignment);
  int (*MemAddressFree)(void *ptr, size_t bytes);
  int (*MemCreate)(hipMemGenericAllocationHandle_t *handle, size_t bytes, int device);
  int (*MemRelease)(hipMemGenericAllocationHandle_t handle);
  int (*MemMap)(void *ptr, size_t bytes, hipMemGenericAllocationHandle_t handle);
  int (*MemUnmap)(void *ptr, size_t bytes);
  int (*MemSetAccess)(void *ptr, size_t bytes, int device);

  /* Pools: which is a device's current one, who may use their memory, and their way to other processes. Adapted: one
   * device at a time; the handle is always a file descriptor, and stays the caller's in import, which binds to the
   * current device (in older ROCm to device 0). MemPoolCreateManaged, for memory that moves by itself
   * (hipMemAllocationTypeManaged, since 7.2), returns HIPMM_HIP_ERROR_NOT_SUPPORTED where hipMemPoolCreate does not
   * know that type. */
  int (*DeviceGetMemPool)(hipMemPool_t *pool, int device);
  int (*DeviceSetMemPool)(int device, hipMemPool_t pool);
  int (*MemPoolSetAccess)(hipMemPool_t pool, int device, int access);
  int (*MemPoolGetAccess)(int *access, hipMemPool_t pool, int device);
  int (*MemPoolCreateManaged)(hipMemPool_t *pool, int device);
  int (*MemPoolExport)(int *fd, hipMemPool_t pool);   /* hipMemPoolExportToShareableHandle */
  int (*MemPoolImport)(hipMemPool_t *pool, int fd);   /* hipMemPoolImportFromShareableHandle */
  int (*MemPoolExportPointer)(void *data, void *ptr); /* data: HIPMM_HIP_POINTER_BYTES */
  int (*MemPoolImportPointer)(void **ptr, hipMemPool_t pool, void *data);

  /* Copies from a device to another, by staging where neither reaches the other's memory; and the device of a stream
   * (since 5.7), which must be live. */
  int (*MemcpyPeerAsync)(void *to, int to_device, const void *from, int from_device, size_t bytes, hipStream_t stream);
  int (*StreamGetDevice)(hipStream_t stream, int *device);
  int (*DriverGetVersion)(int *version);

  /* Whether `device` can reach the memory of `peer`; lets the current device do so, for memory of hipMalloc. */
  int (*DeviceCanAccessPeer)(int *can_access, int device, int peer);
  int (*DeviceEnablePeerAccess)(int peer, unsigned flags);

  const char *runtime; /* "amd", "nvidia", "software", or the path that the graph names */

  /* Whether work on the stream goes into a graph that is being captured: 0 if not (hipStreamCaptureStatus). */
  int (*StreamIsCapturing)(hipStream_t stream, int *status);

  /* Where the allocation begins that `ptr` is in, and how large the runtime says that it is. */
  int (*MemGetAddressRange)(void **start, size_t *bytes, void *ptr);
};

/* Whether work on the stream, which must be live, goes into a graph that is being captured, so that it is done when
 * that is launched, again and again. Until the capture ends, neither the stream nor the device can be waited for, and
 * the stream cannot wait for what is not in the graph: each attempt ends the capture. */
static inline int hipmm_stream_is_captured(const struct hipmm_hip *hip, hipStream_t stream)
{
  int status = 0, code = hip->StreamIsCapturing ? hip->StreamIsCapturing(stream, &status) : 0;
  if (code) hip->GetLastError();
  /* The error is the default stream's, while one is captured that waits for it. */
  return code == HIPMM_HIP_ERROR_STREAM_CAPTURE_IMPLICIT || (!code && status);
}

/* ---- The core's services --------------------------------------------------------------------------------------- */

/* What the core does for one instance of a resource; handed to create, valid until destroy returns. All functions are
 * thread-safe and take the table itself first. */
struct hipmm_services {
  size_t struct_size;
  const char *name;            /* of this resource in the graph */
  int32_t device;              /* the device that it serves */
  const struct hipmm_hip *hip; /* the runtime */

  /* Reports a failure and returns `status`, for `return services->fail(…)`. The core adds file, JSON path and name.
   * `option` names the option of this resource that is at fault, or NULL. The message says what is wrong, what is
   * allowed and what to do. Not for the allocation path: it formats at once. */
  enum hipmm_status (*fail)(const struct hipmm_services *services, enum hipmm_status status, const char *option,
                            const char *format, ...) HIPMM_PRINTF(4, 5);

  /* The same for the allocation path: stores the numbers only; text is made when somebody asks. `text` is a string
   * constant in which {0}, {1}, {2} stand for the numbers, {0:bytes} for a size in words, {0:hex} for a pointer. */
  enum hipmm_status (*refuse)(const struct hipmm_services *services, enum hipmm_status status, const char *text,
                              uint64_t first, uint64_t second, uint64_t third);

  /* The same for a HIP call that returned `code` != 0 when asked for `bytes` (0 if it has no size). Clears HIP's
   * sticky error, and returns the status that fits: HIPMM_E_OUT_OF_MEMORY, _NOT_SUPPORTED, _NO_DEVICE or _HIP. */
  enum hipmm_status (*refuse_hip)(const struct hipmm_services *services, const char *call, int code, size_t bytes);

  /* Writes a line to the debug log, under this resource's name. */
  void (*log)(const struct hipmm_services *services, enum hipmm_log_level level, const char *format, ...)
      HIPMM_PRINTF(3, 4);

  /* Host memory for the plugin's own use, zeroed, never from the application's malloc (which may be interposed on the
   * allocation path); NULL when there is none. Meant for few, large pieces. Free with the same size. */
  void *(*host_allocate)(const struct hipmm_services *services, size_t bytes);
  void (*host_free)(const struct hipmm_services *services, void *ptr, size_t bytes);

  /* Makes this resource's device current for HIP calls that depend on it; leave restores what enter returned. Sources
   * need it round every HIP call; so do events. Costs a driver call or two: not for a path that makes no HIP call. */
  int (*enter_device)(const struct hipmm_services *services);
  void (*leave_device)(const struct hipmm_services *services, int previous);

  /* The sources' block_map of what they hold from the runtime. hold notes a block (HIPMM_E_OUT_OF_MEMORY when the
   * block_map cannot grow; give the block back). release strikes it out and gives its size: HIPMM_E_POINTER if `ptr` is
   * not held, HIPMM_E_SIZE if `bytes` is neither 0 nor the size held. Release before the runtime's free, since another
   * thread may get the same address at once. held looks without striking out. release_next strikes out any one block,
   * for destroy to free what the application left: HIPMM_E_POINTER when there is none. */
  enum hipmm_status (*track)(const struct hipmm_services *services, void *ptr, size_t bytes);
  enum hipmm_status (*untrack)(const struct hipmm_services *services, void *ptr, size_t bytes, size_t *bytes_out);
  enum hipmm_status (*lookup)(const struct hipmm_services *services, const void *ptr, struct hipmm_block *block_out);
  enum hipmm_status (*untrack_any)(const struct hipmm_services *services, struct hipmm_block *block_out);

  /* For sources whose driver keeps more than they asked for (a driver's pool), or that map memory without pointers:
   * corrects the count of bytes that the stack holds. hold and release count by themselves. */
  void (*count_held)(const struct hipmm_services *services, int64_t bytes);

  /* Asks the resources below this one for the live block that starts at `ptr` (see ops->find): each of them once, and
   * a resource before those that it stands on, since it may cut up their blocks. */
  enum hipmm_status (*find_below)(const struct hipmm_services *services, const void *ptr,
                                  struct hipmm_block *block_out);

  /* For a resource that must give up since an upstream did, which has reported `status`: adds what this resource knows
   * to the upstream's words, as refuse would say it, with one number more, {3}. Returns `status`. The first few
   * resources that add something are heard, the nearest to the source first. */
  enum hipmm_status (*explain)(const struct hipmm_services *services, enum hipmm_status status, const char *text,
                               uint64_t first, uint64_t second, uint64_t third, uint64_t fourth);

  /* As find_below, but asks one upstream, or a resource that an option names, and those below it. For a resource over
   * several that must know whose a block is. */
  enum hipmm_status (*find_in)(const struct hipmm_services *services, const struct hipmm_resource *resource,
                               const void *ptr, struct hipmm_block *block_out);

  /* Whether a live block of `resource` may be one that `other` has from it, or from what `resource` hands on, to cut
   * up: which of them a pointer belongs to cannot be left to chance then. Both are upstreams, or named by options. */
  int (*may_cut_up)(const struct hipmm_services *services, const struct hipmm_resource *other,
                    const struct hipmm_resource *resource);

  /* Whether a resource below this one keeps what is freed, to give it out again: a sub-allocator, or a source with
   * HIPMM_PLUGIN_KEEPS_MEMORY. What HIP was told about a block is then true of the next one at its address. */
  int (*is_kept_below)(const struct hipmm_services *services);

  /* Nonzero if the program orders its copies between devices itself, as PyTorch does with events. If 0, the program may
   * rely on the order that runtimes keep for memory of hipMalloc alone: a copy on a default stream waits for the work
   * of the default stream of the device whose memory it reads. Set when the resource is made, and never changed. */
  int32_t copies_are_ordered;
};

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
  HIPMM_OPTION_OBJECT    /* the name under which the program registered an object (hipmm_register_allocator() and the
                            like), of the kind that `unit` names ("allocator", "failure", "region", "mempool")
                                                                   → const void *, the registered struct (a copy that
                                                                     lives as the options do); NULL when not given */
};

enum {
  HIPMM_OPTION_REQUIRED = 1, /* must be given; initial is NULL */
  HIPMM_OPTION_PERCENT = 2,  /* BYTES may be a percentage of the device memory free at creation */

  /* May be set while the resource is in use: ops->reconfigure. Not for what names resources, nor for the fields of a
   * list. */
  HIPMM_OPTION_RELOADABLE = 4
};

/* A BYTES option that was not given and has no default, and the value of its keyword (see choices). */
#define HIPMM_UNLIMITED UINT64_MAX

struct hipmm_strings {
  size_t count;
  const char *const *items;
};

struct hipmm_list {
  size_t count;
  void *items; /* array of the plugin's own struct, field_bytes each */
};

/* A row of a plugin's option table. */
struct hipmm_option {
  const char *name; /* in the file; snake_case, the name of the C field too */
  uint32_t type;    /* enum hipmm_option_type */
  uint32_t flags;
  size_t offset;       /* of the field in the plugin's option struct */
  const char *initial; /* the default, as a user would write it, without quotes; NULL: none */
  const char *unit;    /* of numbers: "bytes", "blocks"; NULL: none */
  const char *doc;     /* one line, a sentence without its full stop */

  const char *minimum, *maximum; /* bounds, as a user would write them; NULL: none */
  const char *at_least;          /* another BYTES option of this table that must not be larger; NULL: none */

  /* ENUM: the words. BYTES: a single word that stands for HIPMM_UNLIMITED. NULL-terminated. */
  const char *const *choices;

  /* LIST: the table of each row, and the size of the struct that it fills. */
  const struct hipmm_option *fields;
  uint32_t n_fields;
  uint32_t field_bytes;
};

/* ---- The descriptor -------------------------------------------------------------------------------------------- */

enum hipmm_plugin_role {
  HIPMM_ROLE_SOURCE = 1,    /* a leaf: asks HIP or the host */
  HIPMM_ROLE_SUB_ALLOCATOR, /* cuts up what its upstream gives */
  HIPMM_ROLE_ADAPTOR,       /* forwards to its upstream and adds something */
  HIPMM_ROLE_RUNTIME        /* exports the HIP API itself; not a resource */
};

enum {
  HIPMM_PLUGIN_NOT_THREAD_SAFE = 1, /* the core serialises its ops */
  HIPMM_PLUGIN_HOST_MEMORY = 2,     /* a source: the host may read and write the memory that it gives */
  HIPMM_PLUGIN_HANDS_ON = 4,        /* what ops->find does not know may be an upstream's, handed on unchanged */
  HIPMM_PLUGIN_KEEPS_MEMORY = 8     /* a source: it may give out again what was freed, as the runtime left it */
};

/* A value that a resource offers to query(), or an action that it offers to perform(). */
struct hipmm_feature {
  const char *name; /* snake_case */
  const char *unit; /* of a value: "bytes", "blocks"; NULL for an action */
  const char *doc;  /* one line, a sentence without its full stop */
};

struct hipmm_plugin {
  uint32_t abi_version; /* HIPMM_PLUGIN_ABI; these four bytes come first for ever */
  uint32_t struct_size; /* sizeof(struct hipmm_plugin) */

  const char *type;    /* the name in the graph; the file is TYPE.so */
  const char *version; /* the plugin's own */
  const char *doc;     /* one line */
  uint32_t role;       /* enum hipmm_plugin_role */
  uint32_t flags;
  uint64_t required_features; /* a bit that this hipmm does not know refuses the plugin; none is defined yet */

  uint32_t min_upstreams, max_upstreams; /* of the key "upstream": 0 for sources, 1 for most others */

  const struct hipmm_option *options;
  uint32_t n_options;
  uint32_t option_bytes; /* sizeof(struct hipmm_option), so that rows may grow */
  size_t options_bytes;  /* size of the plugin's own option struct; 0 if it has none */

  const struct hipmm_feature *values;
  const struct hipmm_feature *actions;
  uint32_t n_values, n_actions;
  uint32_t feature_bytes; /* sizeof(struct hipmm_feature) */
  uint32_t unused;        /* 0 */

  const struct hipmm_ops *ops; /* NULL for a runtime */

  /* Makes an instance. `options` is the plugin's own option struct, filled and checked; it and all it points to live
   * until destroy returns. `upstreams` too. The resource's device is current. On failure nothing is left behind, and
   * services->fail has said why. A runtime is configured here once, before its first HIP call, with no upstreams,
   * services->hip NULL and services->device -1. */
  enum hipmm_status (*create)(const struct hipmm_services *services, const void *options,
                              struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out);

  /* Gives everything back to the upstreams. The resource's device is current, no op is under way. NULL for a
   * runtime. */
  void (*destroy)(void *self);
};

/* The fields that every descriptor begins with. */
#define HIPMM_PLUGIN_HEAD                                                      \
  .abi_version = HIPMM_PLUGIN_ABI, .struct_size = sizeof(struct hipmm_plugin), \
  .option_bytes = sizeof(struct hipmm_option), .feature_bytes = sizeof(struct hipmm_feature)

#ifdef __cplusplus
}
#endif
#endif
