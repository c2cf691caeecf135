/* SPDX-License-Identifier: MIT */
/* cupy.c: the two functions that CuPy's CFunctionAllocator takes (hipmm/torch.h). CuPy gives no stream; its parameter
 * stands for one. */
#include "error.h"
#include "framework.h"

#include <hipmm/torch.h>

void *hipmm_cupy_malloc(void *stream, size_t bytes, int number)
{
  struct framework_device *device = framework_get(number, FRAMEWORK_CUPY);
  void *ptr = NULL;
  if (device && !hipmm_allocate(device->resource, bytes, stream, &ptr)) return ptr;
  framework_complain("cupy", "cannot allocate");
  return NULL;
}

void hipmm_cupy_free(void *stream, void *ptr, int number)
{
  struct framework_device *device = framework_find(number);
  if (!ptr || !device) return;
  if (hipmm_deallocate(device->resource, ptr, 0, stream)) framework_complain("cupy", "a block is not freed");
}
