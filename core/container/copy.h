/* SPDX-License-Identifier: MIT */
/* copy.h: copies between any two places that HIP's devices or the host can reach. */
#ifndef HIPMM_CORE_CONTAINER_COPY_H
#define HIPMM_CORE_CONTAINER_COPY_H

#include <hipmm/plugin.h>

/* Submits a copy to a stream of `device`. 0 bytes: nothing happens. */
enum hipmm_status copy_submit(int device, void *to, const void *from, size_t bytes, hipStream_t stream);

/* The same, and waits. */
enum hipmm_status copy_wait(int device, void *to, const void *from, size_t bytes, hipStream_t stream);

/* Submits a copy from one device's memory to another's, to a stream of the latter. Where the runtime cannot do that, it
 * goes through host memory, and the caller waits. */
enum hipmm_status copy_between(int to_device, void *to, int from_device, const void *from, size_t bytes,
                               hipStream_t stream);

/* Submits a fill with a byte. */
enum hipmm_status copy_fill(int device, void *to, int value, size_t bytes, hipStream_t stream);

#endif
