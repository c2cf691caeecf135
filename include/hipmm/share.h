/* SPDX-License-Identifier: MIT */
/* hipmm/share.h: device memory between the processes of one machine, through pools of the driver.
 *
 * A process that owns memory has a resource of the type `async` with "handle_type": "posix_fd". It sends another
 * process the pool once, as a file descriptor (over a Unix socket, with SCM_RIGHTS), and each block as a struct
 * hipmm_pool_pointer (as plain bytes, by any way). The other process imports the pool as a resource, and the blocks as
 * memory of that resource, which it frees like any other.
 *
 * What orders the two processes is theirs: a block may be imported once the work that allocates it has executed (wait
 * for its stream before sending), and must be freed by all who imported it, and these frees have executed, before its
 * owner frees it. Calls are as those of hipmm/hipmm.h: any thread, outputs only on success. */
#ifndef HIPMM_SHARE_H
#define HIPMM_SHARE_H

#include <hipmm/hipmm.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library itself is compiled with hidden symbols */
#endif

/* A block, for another process. Plain bytes, good for as long as the block is allocated. */
struct hipmm_pool_pointer {
  uint64_t bytes;         /* of the block, as requested */
  unsigned char data[64]; /* the driver's */
};

/* A file descriptor of the pool behind `resource`, or behind the nearest resource below it that can be shared. It is
 * the caller's, who closes it once it is sent. HIPMM_E_NOT_SUPPORTED when there is no such resource, or when it was not
 * made for sharing. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_pool_export_fd(struct hipmm_resource *resource, int *fd_out);

/* The live block at `ptr` of that resource. What a sub-allocator above it (pool, binning, …) cuts up is no block of it,
 * also where a chunk begins: HIPMM_E_POINTER. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_pool_export_pointer(struct hipmm_resource *resource, const void *ptr,
                                                             struct hipmm_pool_pointer *pointer_out);

/* Another process's pool, as a resource on `device`, the device that the memory is on. It allocates nothing
 * (HIPMM_E_NOT_SUPPORTED): its memory comes from hipmm_pool_import_pointer(). `fd` stays the caller's. The caller owns
 * a reference; with the last one the pool is let go, with all blocks imported from it. The same as a resource of the
 * type `async_import`, in a graph or from hipmm_resource_create(), which takes its option `peers` too. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_pool_import_fd(int device, int fd, struct hipmm_resource **resource_out);

/* Another process's block, as memory of `resource`, an imported pool, and of the size that was requested there. Freed
 * with hipmm_deallocate() of that resource, which leaves the owner's memory alone. A block that is imported there
 * already is HIPMM_E_STATE. A size that is larger than the driver says is HIPMM_E_ARGUMENT; a driver that cannot tell
 * leaves it to the caller to trust the other process. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_pool_import_pointer(struct hipmm_resource *resource,
                                                             const struct hipmm_pool_pointer *pointer, void **ptr_out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
