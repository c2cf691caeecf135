/* SPDX-License-Identifier: MIT */
/* cupy.c: the two functions that CuPy's CFunctionAllocator takes (hipmm/torch.h). CuPy gives no stream; its parameter
 * stands for one. */
#include "../base/error.h"
#include "framework_device.h"

#include <hipmm/torch.h>

void *hipmm_cupy_malloc(void *stream, size_t bytes, int number)
{
  struct framework_device *device = framework_enter(number, FRAMEWORK_CUPY);
  void *ptr = NULL;
  bool is_refused = !device || hipmm_allocate(device->resource, bytes, stream, &ptr);
  if (device) framework_leave();
  if (is_refused) framework_complain("cupy", "cannot allocate");
  return is_refused ? NULL : ptr;
}

void hipmm_cupy_free(void *stream, void *ptr, int number)
{
  struct framework_device *device = ptr ? framework_enter_known(number) : NULL;
  if (!device) return;
  if (hipmm_deallocate(device->resource, ptr, 0, stream)) framework_complain("cupy", "a block is not freed");
  framework_leave();
}
