/* SPDX-License-Identifier: MIT */
/* internal.h: what the files of the software device share, under the name of the file that has it; this header has the
 * uppermost layers, and includes those of the others: work.h, tables.h and state.h.
 *
 * The layers, from top to bottom. A file calls files below it, and files of its own line that stand to its right:
 *
 *   software proc_address observer                               the plugin; functions by name; blocks of resources
 *   configure                                                    a new configuration, reset
 *   volumes                                                      copies and fills of several slices
 *   advice fill copy event ipc host pool_api pool_attribute      the HIP API: each file has the functions of one
 *     pool_share settings properties attribute device              subject, and checks their arguments
 *   graph_api stream_capture graph_launch
 *   memory virtual physical stream
 *   pool_order                                                   allocation from pools in the order of streams
 *   submit                                                       handing over operations, and waiting for them
 *   capture                                                      operations that become nodes of a graph
 *   scheduler_threads scheduler_stepped                          when a queue runs, and in which thread
 *   queue                                                        which operation may run
 *   execute                                                      what an operation does
 *   graph program graph_memory node_set                          operations to submit again, and their memory
 *   pool pool_blocks operation span                              what an operation works on
 *   order                                                        which operation is ordered after which
 *   mapping allocation advice_ranges handles heap                memory and tables
 *   watch                                                        what the race detector is told
 *   call                                                         the start and end of each HIP function
 *   options environment error call_table                         options; names, counts and failures of calls
 *   version                                                      in which HIP's numbers the device answers
 *   state                                                        the state, and the current device
 *
 * One mutex guards every object. It is not held while data is copied, while a host function runs, or during a wait.
 * A HIP function is bracketed by software_begin (counts, fails on schedule, locks the mutex) and software_end (unlocks
 * the mutex, stores the error of the thread). No file calls an exported HIP function, since that would count twice.
 * Unless the comment says otherwise, the functions below expect the lock held. */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_INTERNAL_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_INTERNAL_H

#include "work.h"

/* ---- stream.c -------------------------------------------------------------------------------------------------- */

/* The queue behind a handle, which may be any value: NULL and 1 are the current device's default stream, 2 the
 * thread's. hipErrorInvalidHandle for what is not live, else the sticky fault of the stream's device. */
hipError_t software_queue_find(hipStream_t stream, struct software_queue **queue_out);
/* The same, where a default stream means that of `device`. */
hipError_t software_queue_find_on(int device, hipStream_t stream, struct software_queue **queue_out);
hipError_t software_default_queue(int device, struct software_queue **queue_out);
void software_streams_reset(int device); /* -1: all */

/* ---- memory.c -------------------------------------------------------------------------------------------------- */

/* The kinds of memory that hipFree frees. */
#define SOFTWARE_FREEABLE (1U << SOFTWARE_DEVICE_MEMORY | 1U << SOFTWARE_POOLED | 1U << SOFTWARE_MANAGED)
/* Frees what starts at `pointer` if its kind is in `kinds` (bits 1 << kind), after the work that may use it. */
hipError_t software_free(void *pointer, unsigned kinds);

/* ---- The HIP API ----------------------------------------------------------------------------------------------- */

extern const char software_device_name[], software_device_architecture[]; /* device.c */
void software_device_uuid(int device, unsigned char uuid_out[16]);        /* device.c; needs no lock */
/* attribute.c: any attribute by its number; hipErrorInvalidValue for one that the device does not have. */
hipError_t software_attribute(int attribute, int device, int *value_out);
/* pool_attribute.c: whether the device may write to memory of the pool. */
bool software_pool_allows(const struct software_pool *pool, int device);
/* copy.c: submits an operation of `queue` to `runner`, which may be the same; if `waits`, until it has run. On failure
 * it is freed. */
hipError_t software_submit_and_wait(struct software_queue *queue, struct software_queue *runner,
                                    struct software_operation *operation, bool waits);
/* copy.c, fill.c: rows of at least one byte in the stream's order; a call that waits returns when it has run, if HIP promises
 * that. */
hipError_t software_copy_rows(enum software_call call, const struct software_rows *to, const struct software_rows *from,
                              size_t width, size_t rows, hipMemcpyKind kind, bool waits, hipStream_t stream);
hipError_t software_fill_rows(enum software_call call, const struct software_rows *to, uint8_t value, size_t width,
                              size_t rows, bool waits, hipStream_t stream);
void software_events_reset(int device);  /* event.c; -1: all */
void software_virtual_reset(int device); /* virtual.c; -1: all */

/* ---- configure.c ----------------------------------------------------------------------------------------------- */

/* Puts a configuration into force and resets everything; false while memory is still allocated, unless the configuration is
 * the one in force, which destroys nothing. Takes the lock. */
bool software_configure(const struct software_config *config);

#endif
