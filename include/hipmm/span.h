/* SPDX-License-Identifier: MIT */
/* hipmm/span.h: spans. A span is a range of addresses for the most that something may grow to. The program commits memory under
 * the part that it uses, so data grows and shrinks without a copy and without a new address.
 *
 * A `pool` with mapped memory ("growth": "mapped", directly over `device`) serves spans. Memory is committed and decommitted in
 * granules, a size that the runtime sets (2 MiB on NVIDIA's GPUs). Committed memory counts in the pool's live_bytes and
 * reserved_bytes and against its maximum_size; addresses without memory cost a few bytes a granule in host memory. Resources
 * above the pool, such as `limiting` or `statistics`, do not see spans. A span is no block: hipmm_deallocate() refuses it, and it
 * cannot be exported to other processes. hipmm_pointer_lookup() finds it, with all of its addresses as its size.
 *
 * Work that uses an address without memory is a fault of the device. A suspended pool gives the memory of spans back too, and
 * hipmm_resource_resume() puts it, and its content, where it was. Spans that are live when the pool is destroyed go with it, and
 * a warning counts them.
 *
 * The conventions of hipmm.h hold. All functions are thread-safe. */
#ifndef HIPMM_SPAN_H
#define HIPMM_SPAN_H

#include <hipmm/hipmm.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library itself is compiled with hidden symbols */
#endif

/* Reserves addresses for `bytes`, rounded up to whole granules, from the nearest resource at or below `resource` that serves
 * spans. No memory is committed. `granule_out` gets the size of a granule in bytes, and `ptr_out` the first address, a multiple
 * of it. The caller frees the span with hipmm_span_destroy(), and sees to it that the resource lives until then.
 * HIPMM_E_NOT_SUPPORTED: no such resource, or a pool of segments. HIPMM_E_ARGUMENT: 0 bytes, or more than 64 TiB. HIPMM_E_LIMIT or
 * HIPMM_E_HIP: the process has no addresses left. HIPMM_E_OUT_OF_MEMORY: the host has no memory for the records. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_span_create(struct hipmm_resource *resource, size_t bytes, size_t *granule_out,
                                                     void **ptr_out);

/* Commits memory under [offset, offset + bytes) of the span that starts at `ptr`. Both are multiples of the granule. What is
 * committed already stays as it is, with its content. The content of new memory is undefined. The memory is ready for every
 * stream. Where memory is short, the call may wait for the device, so that it belongs before or after a graph capture. A failure
 * commits nothing, unless the runtime then refuses to unmap too: such a granule stays committed. HIPMM_E_OUT_OF_MEMORY, HIPMM_E_LIMIT: as for an allocation, after idle memory of this and of
 * other resources was used. HIPMM_E_STATE: the pool is suspended. HIPMM_E_ARGUMENT: no whole granules, or beyond the span.
 * HIPMM_E_POINTER: no span starts at `ptr`. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_span_commit(void *ptr, size_t offset, size_t bytes);

/* Takes the memory under [offset, offset + bytes) away, after a wait on the host for the work of `stream`, the last that uses it.
 * Granules without memory are passed over. The pool keeps the memory for other requests; hipmm_resource_trim() returns it to the
 * device. HIPMM_E_STATE: `stream`, or another one that the pool knows, is being captured. If the runtime refuses, a part may be decommitted; the call can be repeated.
 * Other errors as above. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_span_decommit(void *ptr, size_t offset, size_t bytes, hipmm_stream_t stream);

/* Decommits all of the span, and frees its addresses. Errors as above; the span is then still live. NULL is not an error. */
enum hipmm_status hipmm_span_destroy(void *ptr, hipmm_stream_t stream);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
