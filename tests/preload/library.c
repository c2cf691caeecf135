/* SPDX-License-Identifier: MIT */
/* library.c: what makes a library for programs to link of the software device: with the name of AMD's it stands in for
 * it. One function calls another that it exports, by way of the loader, as a runtime may. */
#include <hip/hip_runtime_api.h>

__attribute__((visibility("default"))) hipError_t hipMemAllocHost(void **ptr, size_t bytes)
{
  return hipHostMalloc(ptr, bytes, 0);
}
