/* SPDX-License-Identifier: MIT */
/* crt/host_defines.h: what cuda_runtime_api.h needs of this file of CUDA's compiler, for a host compiler: the wheel of
 * CUDA's runtime, which comes with PyTorch, has all of its headers but this one. Found last. */
#pragma once
#define __no_return__        __attribute__((noreturn))
#define __noinline__         __attribute__((noinline))
#define __align__(n)         __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __thread__           __thread
#define __import__
#define __export__
#define __cdecl
#define __annotate__(a) __attribute__((a))
#define __location__(a) __annotate__(a)
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __grid_constant__
#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#ifndef __forceinline__
#define __forceinline__ __inline__ __attribute__((always_inline))
#endif
