/* SPDX-License-Identifier: MIT */
/* operations.h: what the hooks do, the same for both APIs. `hook` is the function that the
 * program has called. Each operation serves the call or passes it on to the runtime, counts it where the report tells of
 * it, and returns a HIP or CUDA error code. Thread-safe, as the functions of the runtime. */
#ifndef HIPMM_TOOLS_PRELOAD_OPERATIONS_H
#define HIPMM_TOOLS_PRELOAD_OPERATIONS_H

#include "hooks.h"
#include <hipmm/plugin.h>
#include <stddef.h>

/* ---- allocate.c ---- */

int allocate_device(enum hook hook, void **ptr, size_t bytes);
int allocate_device_with_flags(enum hook hook, void **ptr, size_t bytes, unsigned flags);
int allocate_device_on(enum hook hook, void **ptr, size_t bytes, hipmm_stream_t stream);
int allocate_device_from_pool(enum hook hook, void **ptr, size_t bytes, hipmm_hip_mempool_t pool,
                              hipmm_stream_t stream);
int allocate_pitch(enum hook hook, void **ptr, size_t *pitch, size_t width, size_t height, unsigned element_bytes);
int allocate_managed(enum hook hook, void **ptr, size_t bytes, unsigned flags);
int allocate_pinned(enum hook hook, void **ptr, size_t bytes);
int allocate_pinned_with_flags(enum hook hook, void **ptr, size_t bytes, unsigned flags);

/* ---- release.c ---- */

/* Waits for all work on the devices that the program uses, then frees. */
int release_device(enum hook hook, void *ptr);
int release_pinned(enum hook hook, void *ptr);

/* Frees in the order of the stream. */
int release_device_on(enum hook hook, void *ptr, hipmm_stream_t stream);

/* hipDeviceReset() and cudaDeviceReset(): frees everything, then resets the device. Where hipmm serves other devices
 * too, the program's memory on this device stays until the program ends, since hipmm can only be closed as a whole; one
 * message says so. As with the runtime's function, no other thread may use the device meanwhile. */
int release_reset_device(enum hook hook);

/* cuDevicePrimaryCtxReset(): the same for the device that it names. */
int release_reset_primary(enum hook hook, int device);

/* Whether a block waits to be freed, since the program freed it while a stream was being captured. */
bool release_has_deferred(void);

/* Waits for all work on the devices that the program uses, then frees the deferred blocks. On failure the blocks stay
 * deferred. */
int release_synchronize(void);

/* ---- query.c ---- */

int query_memory_info(enum hook hook, size_t *free_bytes, size_t *total_bytes);

/* How much memory a device has, here and in its properties: as query_memory_info() says. */
int query_total(enum hook hook, size_t *bytes, int device);
int query_properties(enum hook hook, void *properties, int device);

/* These answer for the program's block, and refuse the pointer to a freed block as the runtime does. */
int query_address_range(enum hook hook, void **base, size_t *bytes, void *ptr);
int query_size(enum hook hook, void *ptr, size_t *bytes);
int query_attribute(enum hook hook, void *data, int attribute, void *ptr);
int query_host_flags(enum hook hook, unsigned *flags, void *ptr);

/* hipPointerGetAttributes() and cudaPointerGetAttributes(): `attributes` has the same beginning in every release. */
int query_attributes(enum hook hook, void *attributes, const void *ptr);

/* hipDrvPointerGetAttributes(). */
int query_attribute_list(enum hook hook, unsigned count, int *attributes, void **data, void *ptr);

/* ---- share.c ---- */

/* `handle` is a hipIpcMemHandle_t or a cudaIpcMemHandle_t. Refused for a block in memory that the driver cannot export. */
int share_get(enum hook hook, void *handle, void *ptr);
int share_open(enum hook hook, void **ptr, struct ipc_handle handle, unsigned flags);
int share_close(enum hook hook, void *ptr);

/* Before hipmm is closed (-1), or a device is reset: closes the mapped memory of other processes that was opened there. */
void share_close_imports(int device);

/* The program has reset the device: what was opened there is closed. */
void share_forget(int device);

/* hipMemPoolExportPointer(): refused for a block of hipmm's that is a part of an allocation. */
int share_export(enum hook hook, void *data, void *ptr);

/* ---- past.c ---- */

/* hipMemCreate() and cuMemCreate(): passed on, counted, and held to the limit of physical memory; and what ends such memory, or
 * makes it last. */
int past_create(enum hook hook, uint64_t *handle, size_t bytes, const void *properties, uint64_t flags);
int past_release(enum hook hook, uint64_t handle);
int past_retain(enum hook hook, uint64_t *handle, void *ptr);
int past_map(enum hook hook, void *ptr, size_t bytes, size_t offset, uint64_t handle, uint64_t flags);
int past_unmap(enum hook hook, void *ptr, size_t bytes);

/* ---- access.c ---- */

/* Peer access is a state of the process, which the graph's option "peers" changes too. The program finds its own state:
 * access that the graph enabled is not enabled for the program, and stays when the program disables it. */
int access_enable_peer(enum hook hook, int peer, unsigned flags);
int access_disable_peer(enum hook hook, int peer);

/* The same for the driver: `peer` is a context. */
int access_enable_context(enum hook hook, void *peer, unsigned flags);
int access_disable_context(enum hook hook, void *peer);

/* The program has reset the device, which is current: the access that it enabled is gone. `is_real` false: the device
 * itself was not reset, since hipmm's memory stays, so the access is disabled one by one. */
void access_reset(enum family family, int device, bool is_real);

/* hipMemPoolSetAccess(): the access that other devices get holds for the blocks too that hipmm gave out in the pool's
 * place. `access` points to `count` of hipMemAccessDesc or cudaMemAccessDesc. */
int access_set(enum hook hook, hipmm_hip_mempool_t pool, const void *access, size_t count);

#endif
