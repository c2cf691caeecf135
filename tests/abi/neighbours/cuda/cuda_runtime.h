/* SPDX-License-Identifier: MIT */
/* A stand-in for CUDA's header, where CUDA is not installed: the types that a program passes to hipmm, declared as there. */
#ifndef STAND_IN_CUDA_RUNTIME_H
#define STAND_IN_CUDA_RUNTIME_H

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;

#endif
