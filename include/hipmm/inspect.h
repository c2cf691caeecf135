/* SPDX-License-Identifier: MIT */
/* hipmm/inspect.h: the live resources with their upstreams, values, options and blocks as C structs, and the resource
 * to which a pointer belongs. hipmm_list() and hipmm_snapshot() of hipmm.h give the same as JSON.
 *
 * The conventions of hipmm.h hold. All functions are thread-safe, and only hipmm_call_site() is for the path of
 * allocations. The caller sets struct_size of a struct that a function fills; members beyond it are not written. */
#ifndef HIPMM_INSPECT_H
#define HIPMM_INSPECT_H

#include <hipmm/hipmm.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library itself is compiled with hidden symbols */
#endif

/* ---- Pointers ---------------------------------------------------------------------------------------------------- */

/* Flags of struct hipmm_pointer. */
enum {
  HIPMM_POINTER_STREAM_KNOWN = 1, /* `stream` is the stream of the allocation: the resource keeps it */
  HIPMM_POINTER_MAPPED = 2        /* `base` is a chunk of mapped memory, and the next chunk may be another allocation */
};

/* The live block in which a pointer lies, as far as hipmm knows it. Sizes and offsets are in bytes. */
struct hipmm_pointer {
  size_t struct_size;
  struct hipmm_resource *resource; /* has the block, and owns a reference for the caller; see hipmm_pointer_lookup() */
  int32_t device;
  uint32_t flags; /* HIPMM_POINTER_… */
  void *ptr;      /* start of the block */
  size_t bytes;   /* as requested */

  /* The block's own bytes from `ptr` on, at least `bytes`: the bytes that rounding has added may be used until the
   * block is freed. */
  size_t usable_bytes;

  /* The driver's allocation in which the block starts, and the distance from its start. With HIPMM_POINTER_MAPPED a
   * block may extend over several chunks. */
  void *base;
  size_t base_bytes;
  size_t offset;
  hipmm_stream_t stream; /* NULL unless its flag is set */
};

/* Finds the live block in which `ptr` lies, in any stack (UMF: umfPoolByPtr). It works without initialisation too,
 * while a stack of hipmm_stack_build_from_file() lives. The time of the search grows with the number of resources for
 * the start of a block, and with the number of blocks for a pointer into a block.
 *
 * The resource is the topmost one that keeps a record of the block: `pool` above `device`, for example. Adaptors
 * without a record of blocks, such as `statistics`, are not found: free the block with the resource that allocated it.
 * The caller owns a reference to the resource, and releases it. HIPMM_E_POINTER: no live block of hipmm has this
 * address; it is foreign, or was freed before. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_pointer_lookup(const void *ptr, struct hipmm_pointer *pointer_out);

/* ---- Resources --------------------------------------------------------------------------------------------------- */

/* Calls `visitor` for every live resource of `device`, or of all devices if `device` is negative: stack by stack,
 * each from the top down. The visitor may call hipmm; to keep the resource it needs a reference of its own.
 * Resources that are created or destroyed meanwhile may be left out. The visit has a reference to the stack that it
 * is at: hipmm_finalize(), which a visitor may call, does not wait for it. */
enum hipmm_status hipmm_resource_visit(int device, void (*visitor)(void *arg, struct hipmm_resource *resource),
                                       void *arg);

/* The number of upstreams of a resource, and the upstream at `index`, from 0 (RMM: get_upstream()). The caller owns a
 * reference. Resources that options name, such as those of bins, follow the upstreams. An index that is not below the
 * number is HIPMM_E_ARGUMENT. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_upstream_count(struct hipmm_resource *resource, size_t *count_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_upstream(struct hipmm_resource *resource, size_t index,
                                                           struct hipmm_resource **upstream_out);

/* Whether memory that was allocated from one can be freed to the other: 1 or 0 (RMM: is_equal()). Each resource has a
 * record of its own blocks, so only a resource itself is equal to it. NULL is equal to nothing. */
int hipmm_resource_is_equal(const struct hipmm_resource *resource, const struct hipmm_resource *other);

/* What may access the memory of a resource. */
enum {
  HIPMM_ACCESS_HOST = 1,  /* the host may read and write it (RMM: host_accessible) */
  HIPMM_ACCESS_DEVICE = 2 /* kernels of the resource's device may (RMM: device_accessible) */
};

/* These flags, for memory from all sources below the resource. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_access(struct hipmm_resource *resource, unsigned *access_out);

/* The driver's pool (hipMemPool_t) of the resource, or of the nearest resource below that has one: `async`, `async_view`,
 * `async_managed` and `async_pinned` (RMM: pool_handle()). It belongs to that resource. HIPMM_E_NOT_SUPPORTED if there is
 * none. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_pool_handle(struct hipmm_resource *resource, void **handle_out);

/* A pointer of the program that a resource carries. set replaces it. `release`, which may be NULL, is called with the
 * pointer when it is replaced, and when the resource is destroyed; it must not call hipmm. get writes NULL if none was
 * set. The caller ensures that no thread uses a pointer that another thread replaces. */
enum hipmm_status hipmm_resource_set_user_data(struct hipmm_resource *resource, void *data,
                                               void (*release)(void *data));
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_get_user_data(struct hipmm_resource *resource, void **data_out);

/* ---- Values and options ------------------------------------------------------------------------------------------ */

/* A value of a resource. The texts live as long as the process. */
struct hipmm_value {
  size_t struct_size;
  const char *name; /* for hipmm_resource_query() */
  const char *unit; /* "bytes", "blocks", … */
  const char *doc;  /* one line */
  int64_t value;
  uint32_t is_known; /* 0: it cannot be read, and `value` is 0 */
  uint32_t unused;
};

/* Calls `visitor` for every value of this resource itself, in the order of `hipmm describe TYPE`. The rules of
 * hipmm_resource_visit() for visitors hold here, and for options. */
enum hipmm_status hipmm_resource_visit_values(struct hipmm_resource *resource,
                                              void (*visitor)(void *arg, const struct hipmm_value *value), void *arg);

/* An option of a resource, with its current value. `text` lasts for the call of the visitor, the other texts as long as
 * the process. */
struct hipmm_option_state {
  size_t struct_size;
  const char *name;
  const char *type; /* as `hipmm describe TYPE` shows it: "bool", "bytes", "enum", … */
  const char *unit; /* of numbers; NULL: none */
  const char *doc;  /* one line */
  const char *text; /* as hipmm_set() takes it: plain text, or JSON for lists; NULL: no value */

  /* The value of an option of type bool (0 or 1), integer, bytes (a percentage in bytes; INT64_MAX: unlimited),
   * duration (nanoseconds) or enum (the index of the word). 0 for other types. */
  int64_t integer;
  double ratio;                       /* of type ratio; 0 for other types */
  uint32_t is_default, is_reloadable; /* has its default value; hipmm_set() accepts it */
};

enum hipmm_status hipmm_resource_visit_options(struct hipmm_resource *resource,
                                               void (*visitor)(void *arg, const struct hipmm_option_state *option),
                                               void *arg);

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

/* The states of a range of memory that a resource holds, for introspection. */
enum hipmm_extent_state {
  HIPMM_EXTENT_LIVE = 1, /* allocated */
  HIPMM_EXTENT_FREE,     /* free on every stream */
  HIPMM_EXTENT_PENDING,  /* free on `stream`; other streams must wait for its work */
  HIPMM_EXTENT_CACHED,   /* free, kept for one thread */
  HIPMM_EXTENT_FORCE_32BIT = 0x7fffffff
};

/* Flags of such a range. */
enum {
  /* Never joined with the memory before it, even if that memory ends here: it begins an upstream's block or follows a
   * hole, or this resource never joins blocks. */
  HIPMM_EXTENT_BARRIER = 1,

  /* Free memory that can be remapped: all such memory together serves a request as if it were in one piece. */
  HIPMM_EXTENT_MOVABLE = 2
};

/* A range of memory that a resource holds. Never grows. */
struct hipmm_extent {
  const void *ptr;
  size_t bytes;          /* of a live block: as requested */
  uint32_t state;        /* enum hipmm_extent_state */
  uint32_t flags;        /* HIPMM_EXTENT_… */
  hipmm_stream_t stream; /* on which a live block was allocated, and a pending or cached one was freed */
};

/* Calls `visitor` for every range of memory that the resource holds, if possible in the order of addresses: for every
 * type the live blocks, and for types that divide memory the free memory too. `visitor` must not call hipmm: it may run
 * under locks. Blocks that other threads allocate and free meanwhile may be missing. */
enum hipmm_status hipmm_resource_visit_blocks(struct hipmm_resource *resource,
                                              void (*visitor)(void *arg, const struct hipmm_extent *extent), void *arg);

/* ---- Call sites -------------------------------------------------------------------------------------------------- */

/* For a caller that runs Python, and releases its interpreter lock before it allocates `bytes`. If a resource keeps call
 * stacks, writes the frames of Python to `text`, of 8 KiB or so, which the thread's allocations have as their stacks until
 * the call with 0, NULL, 0. Made once with these before the first allocation, it finds Python. Returns 1 if the frames are wanted
 * and the thread does not run Python: a caller that may take the lock, since it holds no other, takes it and calls again; else 0.
 * If it knows better than C functions what the thread does, it writes lines "NAME from FILE\n" to `text`, and calls with SIZE_MAX as
 * `bytes` and their length as `text_bytes`. */
int hipmm_call_site(size_t bytes, char *text, size_t text_bytes);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
