/* SPDX-License-Identifier: MIT */
/* hipmm/memory.h: allocations with more arguments, or more at once, than hipmm_allocate() and hipmm_deallocate() have.
 *
 * Each of these functions consists of those two and of work on the stream. So a block of one may be freed by another.
 * The conventions of hipmm.h hold: a NULL resource is the current device's current resource, zero bytes give NULL and
 * succeed, and all functions are thread-safe. */
#ifndef HIPMM_MEMORY_H
#define HIPMM_MEMORY_H

#include <hipmm/hipmm.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library itself is compiled with hidden symbols */
#endif

/* Flags of an allocation. */
enum {
  HIPMM_ALLOCATE_ZEROED = 1, /* the memory is filled with zeros, by work on the stream */

  /* The call waits for its stream, so that every stream and the host may use the memory at once. HIPMM_E_STATE in a graph
   * capture of the stream. */
  HIPMM_ALLOCATE_SYNCHRONOUS = 2,

  /* Other processes may get the block (hipmm_share_export_pointer()), whatever its size and its resource's options: the block
   * has a chunk of its own. The resource must be a pool with mapped memory; other resources, such as one above the pool,
   * return HIPMM_E_NOT_SUPPORTED. */
  HIPMM_ALLOCATE_EXPORTABLE = 4
};

/* An allocation. The caller sets struct_size = sizeof(struct hipmm_request); a field that is 0 or NULL has its default.
 * Later releases may add fields. */
struct hipmm_request {
  size_t struct_size;
  struct hipmm_resource *resource;
  size_t bytes;
  size_t alignment; /* in bytes, a power of two; 0: 256 */
  hipmm_stream_t stream;
  uint32_t flags;  /* HIPMM_ALLOCATE_… */
  uint32_t unused; /* 0 */
};

/* Allocates as requested. An unknown flag is HIPMM_E_ARGUMENT. After a failure nothing is allocated. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_allocate_ex(const struct hipmm_request *request, void **ptr_out);

/* Allocates memory that is filled with zeros by work on the stream (UMF: umfPoolCalloc). Memory that only the host can
 * access is filled by the call, which waits for the stream: HIPMM_E_STATE in a graph capture of the stream. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_allocate_zeroed(struct hipmm_resource *resource, size_t bytes,
                                                         hipmm_stream_t stream, void **ptr_out);

/* allocate_sync waits for the default stream, so that every stream and the host may use the memory at once.
 * deallocate_sync frees memory that no work uses any more, on any stream: the caller has waited for it (RMM:
 * allocate_sync, deallocate_sync). `bytes` is as for hipmm_deallocate(). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_allocate_sync(struct hipmm_resource *resource, size_t bytes, void **ptr_out);
enum hipmm_status hipmm_deallocate_sync(struct hipmm_resource *resource, void *ptr, size_t bytes);

/* Moves the content of a block to a new block of `new_bytes`, as far as it fits, by work on `stream`, and frees the old
 * block on that stream (C: realloc; UMF: umfPoolRealloc). `bytes` is the old size, or 0 if the caller does not know it.
 * With equal sizes the block stays. A NULL pointer allocates; 0 new bytes free the block and give NULL. The content
 * beyond the old size is undefined. The new block is aligned to 256 bytes. After a failure the old block is as it was.
 * It refuses the pointers and sizes that a free refuses: HIPMM_E_POINTER, HIPMM_E_SIZE. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_reallocate(struct hipmm_resource *resource, void *ptr, size_t bytes,
                                                    size_t new_bytes, hipmm_stream_t stream, void **ptr_out);

/* Allocates `n` blocks of the sizes in `bytes`: all of them, or none after a failure. `ptrs_out` has room for n. The
 * arrays may be NULL if n is 0. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_allocate_batch(struct hipmm_resource *resource, size_t n, const size_t *bytes,
                                                        hipmm_stream_t stream, void **ptrs_out);

/* Frees `n` blocks. `bytes` has their sizes, or is NULL if the caller does not know them. Returns the first failure; the
 * other blocks are freed all the same. */
enum hipmm_status hipmm_deallocate_batch(struct hipmm_resource *resource, size_t n, void *const *ptrs,
                                         const size_t *bytes, hipmm_stream_t stream);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
