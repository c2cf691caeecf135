/* SPDX-License-Identifier: MIT */
/* cudart.h: the functions of the runtime in cudart.c. */
#ifndef HIPMM_TESTS_PRELOAD_OVER_CUDART_H
#define HIPMM_TESTS_PRELOAD_OVER_CUDART_H

#include <stddef.h>

/* With nvcc's default the functions are in the program, which exports none of them. */
#ifdef STATIC
#define RUNTIME(name) __attribute__((visibility("hidden"))) int name
#else
#define RUNTIME(name) __attribute__((visibility("default"))) int name
#endif

RUNTIME(cudaMalloc)(void **ptr, size_t bytes);
RUNTIME(cudaFree)(void *ptr);
RUNTIME(cudaMallocAsync)(void **ptr, size_t bytes, void *stream);
RUNTIME(cudaMallocAsync_ptsz)(void **ptr, size_t bytes, void *stream);
RUNTIME(cudaFreeAsync)(void *ptr, void *stream);
RUNTIME(cudaMallocPitch)(void **ptr, size_t *pitch, size_t width, size_t height);
RUNTIME(cudaMemGetInfo)(size_t *free_bytes, size_t *total_bytes);
RUNTIME(cudaMemset)(void *ptr, unsigned char value, size_t bytes);
RUNTIME(cudaMemcpy)(void *to, const void *from, size_t bytes);
RUNTIME(cudaStreamCreateWithFlags)(void **stream, unsigned flags);
RUNTIME(cudaStreamDestroy)(void *stream);
RUNTIME(cudaStreamIsCapturing)(void *stream, int *state);
RUNTIME(cudaDeviceSynchronize)(void);
RUNTIME(cudaGetDevice)(int *device);
RUNTIME(cudaGetLastError)(void);
RUNTIME(cudaDeviceReset)(void);

#endif
