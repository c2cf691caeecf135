/* SPDX-License-Identifier: MIT */
/* hipmm/inspect.h: what lives, as C structs: to which resource a pointer belongs, and the live resources with their
 * upstreams, values, options and blocks. hipmm_list() and hipmm_snapshot() of hipmm.h say the same as JSON.
 *
 * The conventions of hipmm.h hold; all functions are thread-safe, and none is for the path of allocations. The caller
 * sets struct_size of a struct that a function fills; members beyond it are not written. */
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

/* What hipmm knows of the live block in which a pointer lies. Sizes and offsets are in bytes. */
struct hipmm_pointer {
  size_t struct_size;
  struct hipmm_resource *resource; /* has the block, and owns a reference for the caller; see hipmm_pointer_lookup() */
  int32_t device;
  uint32_t flags; /* HIPMM_POINTER_… */
  void *ptr;      /* start of the block */
  size_t bytes;   /* as requested */

  /* From `ptr` on the block's own, at least `bytes`: what rounding has added may be used until the block is freed. */
  size_t usable_bytes;

  /* The driver's allocation in which the block starts, and how far from its start. With HIPMM_POINTER_MAPPED a block may
   * extend over several chunks. */
  void *base;
  size_t base_bytes;
  size_t offset;
  hipmm_stream_t stream; /* NULL unless its flag is set */
};

/* Finds the live block in which `ptr` lies, in any stack (UMF: umfPoolByPtr). For the start of a block the search takes
 * a time that grows with the number of resources; for a pointer into a block it grows with the number of blocks.
 *
 * The resource is the topmost one that keeps a record of the block: `pool` above `device`, for example. Adaptors without
 * a record of blocks, such as `statistics`, are not found: free the block with the resource that allocated it. The
 * caller owns a reference to the resource and releases it. HIPMM_E_POINTER: no live block of hipmm has this address; it
 * is foreign, or was freed before. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_pointer_lookup(const void *ptr, struct hipmm_pointer *pointer_out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
