/* SPDX-License-Identifier: MIT */
/* A stand-in for HIP's header on its NVIDIA platform, which needs a CUDA of its own time: HIP's types are CUDA's there. */
#ifndef STAND_IN_HIP_RUNTIME_H
#define STAND_IN_HIP_RUNTIME_H

#include <cuda_runtime.h>

typedef cudaStream_t hipStream_t;
typedef cudaEvent_t hipEvent_t;
typedef cudaMemPool_t hipMemPool_t;

#endif
