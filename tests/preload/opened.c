/* SPDX-License-Identifier: MIT */
/* opened.c: a library that uses CUDA, for opener.c. */
#include "cudart.h"

int use(void);

__attribute__((visibility("default"))) int use(void)
{
  void *memory;
  cudaStream_t stream;
  unsigned char byte = 0;
  int bad = cudaStreamCreate(&stream) || cudaMalloc(&memory, 4096);
  bad = bad || cudaMemsetAsync(memory, 6, 4096, stream) || cudaMemcpyAsync(&byte, memory, 1, 2, stream);
  bad = bad || cudaStreamSynchronize(stream) || byte != 6 || cudaFree(memory);
  return bad || cudaStreamDestroy(stream);
}
