/* SPDX-License-Identifier: MIT */
/* hipmm/share.h: shares device memory between the processes of one machine, through pools of the driver or as mapped memory.
 *
 * A process that owns memory has a resource of the type `async` with "handle_type": "posix_fd". It sends another
 * process the pool once, as a file descriptor (over a Unix socket, with SCM_RIGHTS), and each block as a struct
 * hipmm_share_pointer (as plain bytes, by any way). The other process imports the pool as a resource, and the blocks as
 * memory of that resource, which it frees like any other.
 *
 * The two processes must order their work. A block may be imported once the work that allocates it has executed: wait
 * for its stream before sending it. All importing processes must free the block, and these frees must have executed,
 * before its owner frees it. The conventions of hipmm/hipmm.h hold; all functions are thread-safe. */
#ifndef HIPMM_SHARE_H
#define HIPMM_SHARE_H

#include <hipmm/hipmm.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library itself is compiled with hidden symbols */
#endif

#define HIPMM_SHARE_MAGIC   0x4d4d4948u /* "HIMM" in memory, where the first byte is the lowest */
#define HIPMM_SHARE_VERSION 1

/* A block, for another process. Plain bytes, valid as long as the block is allocated. Export fills all fields. Import
 * refuses data that no hipmm has exported (HIPMM_E_ARGUMENT), and another version or size (HIPMM_E_NOT_SUPPORTED),
 * since the two processes may use different releases of hipmm. */
struct hipmm_share_pointer {
  uint32_t magic;         /* HIPMM_SHARE_MAGIC */
  uint16_t version;       /* HIPMM_SHARE_VERSION */
  uint16_t struct_size;   /* sizeof(struct hipmm_share_pointer) */
  uint64_t bytes;         /* of the block, as requested */
  unsigned char data[64]; /* the driver's */
};

/* A file descriptor of the pool of `resource`, or of the nearest resource below that can be shared. The caller owns the
 * descriptor and closes it. HIPMM_E_NOT_SUPPORTED if there is no such resource, or it was not configured for
 * sharing. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_share_export_fd(struct hipmm_resource *resource, int *fd_out);

/* The live block at `ptr` of that resource. Blocks of a sub-allocator above it (pool, binning, …) are HIPMM_E_POINTER,
 * even at the start of a chunk: the driver exports a chunk as a whole, with all blocks in it.
 *
 * For a block of a pool with mapped memory (below), the output is a handle, which names this process. The handle is valid until
 * the block is freed or this process ends, and is the same in each call. Nothing is exported until another process opens it.
 * The first handle opens a socket in $XDG_RUNTIME_DIR/hipmm. HIPMM_E_NOT_SUPPORTED: there is no safe folder, the process has
 * raised rights, hipmm found the graph and nobody named it, or the block cannot be exported. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_share_export_pointer(struct hipmm_resource *resource, const void *ptr,
                                                              struct hipmm_share_pointer *pointer_out);

/* Imports another process's pool as a resource on `device`, the device of its memory. The resource cannot allocate
 * (HIPMM_E_NOT_SUPPORTED): its memory comes from hipmm_share_import_pointer(). The caller still owns `fd`, and owns a
 * reference to the resource; the last reference releases the pool with all blocks imported from it. The resource is of
 * the type `async_import`, which a graph and hipmm_resource_create() can use too, with its option `peers`. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_share_import_fd(int device, int fd, struct hipmm_resource **resource_out);

/* Imports another process's block as memory of `resource`, an imported pool, with the size that was requested there.
 * The caller frees it with hipmm_deallocate(), which does not free the owner's memory. A block that was imported
 * already is HIPMM_E_STATE. A size above the driver's is HIPMM_E_ARGUMENT; if the driver cannot tell the size, the
 * caller must trust the other process.
 *
 * The handle of a block in mapped memory is opened in a resource of the type `device`, on the memory's device or on one that
 * can access it. Each import has addresses of its own. HIPMM_E_STATE: this process made the handle. HIPMM_E_IO, with the
 * reason: the process that made the handle has ended or freed the block, or cannot be reached. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_share_import_pointer(struct hipmm_resource *resource,
                                                              const struct hipmm_share_pointer *pointer,
                                                              void **ptr_out);

/* ---- Mapped memory ----------------------------------------------------------------------------------------------- */

/* A block of a `pool` with mapped memory lies in chunks. Each block of 1 MiB or more has one chunk of its own if the pool has
 * "exportable": true, or if the `device` below it has "handle_type": "posix_fd". Such a chunk can have a file descriptor. The
 * other process can read and write all of each chunk that it gets, for as long as it keeps a descriptor or a mapping, even
 * after the owner has freed the block and uses the chunk again. So share only with processes that may see what the pool will
 * hold there. While the block lives, its chunk has no other content, and is never mapped elsewhere. Other blocks share
 * chunks, and cannot be exported, except for blocks with HIPMM_ALLOCATE_EXPORTABLE (hipmm/memory.h).
 *
 * The owner sends the block as plain bytes, and its parts with their descriptors (at most 253 in one message with
 * SCM_RIGHTS; RLIMIT_NOFILE limits how many a process has). The other process imports them into a resource of the type
 * `device`. The order of work and of frees is as above. Both structs never grow. */

/* A block of mapped memory, for another process. */
struct hipmm_share_block {
  uint64_t bytes;   /* of the block, as requested */
  uint64_t offset;  /* of the block in its first part, in bytes */
  uint64_t n_parts; /* at least 1 */
};

/* A chunk behind the block. Of its members only the descriptor belongs to one process. */
struct hipmm_share_part {
  uint64_t bytes;
  int32_t fd;
  uint32_t unused; /* 0 */
};

/* Describes the live block that starts at `ptr`, of `resource` or of a resource below it. With parts_out NULL
 * nothing is exported, and block_out has the number of parts. Otherwise parts_out has room for `n_parts`, and gets a
 * new descriptor for each part, which the caller closes; too little room is HIPMM_E_SIZE. HIPMM_E_NOT_SUPPORTED: the
 * block is in no mapped memory, its memory was not created for other processes, or it is too small and shares a
 * chunk with other blocks. HIPMM_E_POINTER: it is not live, or a resource above the mapped pool divides it into
 * blocks of its own. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_share_export_block(struct hipmm_resource *resource, const void *ptr,
                                                            struct hipmm_share_block *block_out,
                                                            struct hipmm_share_part *parts_out, size_t n_parts);

/* Imports another process's block as memory of `resource`, of the type `device`, on the device of the memory. `parts`
 * has the `n_parts` parts that came with the block; a block that claims more parts is HIPMM_E_ARGUMENT. The caller
 * still owns the descriptors, and may close them at once. The caller frees the block with hipmm_deallocate() and the
 * size that was requested; that does not free the owner's memory. Each import of a block has addresses of its own. Data
 * that hipmm_share_export_block() did not export is HIPMM_E_ARGUMENT or HIPMM_E_HIP. The caller must trust the other
 * process as to which memory the descriptors are of. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_share_import_block(struct hipmm_resource *resource,
                                                            const struct hipmm_share_block *block,
                                                            const struct hipmm_share_part *parts, size_t n_parts,
                                                            void **ptr_out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
