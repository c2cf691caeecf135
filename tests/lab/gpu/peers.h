/* SPDX-License-Identifier: MIT */
/* peers.h: what the files of the program `peers` share: the runtime's names, results by name, and data. */
#ifndef HIPMM_TESTS_GPU_PEERS_H
#define HIPMM_TESTS_GPU_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef PEERS_HIP
#include <hip/hip_runtime_api.h>
#define GPU(name) hip##name
typedef hipPointerAttribute_t peers_attributes;
#else
#include <cuda_runtime_api.h>
#define GPU(name) cuda##name
typedef struct cudaPointerAttributes peers_attributes;
#endif

/* A copy is from one place to another: a device or the host. */
enum { DEVICES = 2, HOST = DEVICES, PLACES };
enum { SIZES = 2, SMALL = 1000, LARGE = 5000000 }; /* multiples of 200: see copy_rows() */

/* A source and a target of each size, on one device. */
struct peers_blocks {
  void *source[SIZES], *target[SIZES];
};

extern const size_t peers_sizes[SIZES];
extern GPU(Stream_t) peers_streams[DEVICES]; /* one on each device, NULL before the device is used */

/* ---- Results: peers_result.c */

/* How many of several attempts were right, and what the first of the others came to. */
struct peers_tally {
  int tried, failed;
  char first[160];
};

/* Counts an attempt. `wrong` is NULL where all was right. */
__attribute__((format(printf, 3, 4))) void peers_count(struct peers_tally *tally, const char *wrong, const char *format,
                                                       ...);

/* Keeps the result of what `format` names. The first is for a tally, the second for text. */
__attribute__((format(printf, 2, 3))) void peers_tell(const struct peers_tally *tally, const char *format, ...);
__attribute__((format(printf, 2, 3))) void peers_tell_text(const char *result, const char *format, ...);

/* Prints all results as one line of JSON. */
void peers_print(void);

/* Ends the program when a call that only prepares an attempt fails. */
void peers_expect(const char *file, int line, const char *call, GPU(Error_t) code);
#define PREPARE(call) peers_expect(__FILE__, __LINE__, #call, (call))

/* The name of an error, NULL for success. The thread's last error is cleared. */
const char *peers_error(GPU(Error_t) code);

/* ---- Memory and data: peers_data.c */

/* Memory of `device`, from the runtime or from hipmm (PEERS_HIPMM). Any device may be current, and stays it. NULL: there
 * is none, and peers_memory_error() says why. All work on the memory is done when it is freed. */
void *peers_allocate(int device, size_t bytes);
const char *peers_free(int device, void *ptr, size_t bytes); /* NULL for success, else why not */
const char *peers_memory_error(void);
struct peers_blocks peers_allocate_blocks(int device);

/* Bytes that differ from place to place and from seed to seed. */
void peers_pattern(unsigned char *bytes, size_t count, unsigned seed);

/* Writes and reads with the memory's own device current, and waits. */
void peers_write(int device, void *to, const void *bytes, size_t count);
void peers_read(int device, void *bytes, const void *from, size_t count);

/* NULL if the memory of `device` holds these bytes, else where it does not. `scratch` has room for them. */
const char *peers_compare(int device, const void *memory, const unsigned char *wanted, unsigned char *scratch,
                          size_t count);

/* Waits for the devices that have been used. */
void peers_wait(void);

/* ---- Kernels: peers_kernels.c */

/* Has kernels of each device read and write memory of both. `state` names these results; blocks are those of each
 * device. Without kernels (HIP) nothing is done. */
void peers_try_kernels(const char *state, const struct peers_blocks *blocks[DEVICES]);

/* Makes `device` current, and delays its default stream by a few hundredths of a second. Not with HIP. */
void peers_delay(int device);

/* ---- Order: peers_order.c */

/* Has the default stream of each device copy what the default stream of the same and of the other device writes.
 * Without kernels (HIP) nothing is done. */
void peers_try_order(const char *state, const struct peers_blocks *blocks[DEVICES]);

#endif
