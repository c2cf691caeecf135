/* SPDX-License-Identifier: MIT */
/* library.c: a library that programs can link to, with the software device in it and the name of AMD's library. One of
 * its functions calls another through the loader, as a runtime may. */
#include <hip/hip_runtime_api.h>

__attribute__((visibility("default"))) hipError_t hipMemAllocHost(void **ptr, size_t bytes)
{
  return hipHostMalloc(ptr, bytes, 0);
}
