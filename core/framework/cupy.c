/* SPDX-License-Identifier: MIT */
/* cupy.c: the two functions that CuPy's CFunctionAllocator takes (hipmm/torch.h). CuPy gives no stream; its parameter
 * stands for one. */
#include "../base/error.h"
#include "framework_device.h"

#include <hipmm/torch.h>

void *hipmm_cupy_malloc(void *stream, size_t bytes, int number)
{
  struct framework_call call = framework_enter(number, FRAMEWORK_CUPY);
  void *ptr = NULL;
  bool is_refused = !call.device || (bytes && framework_allocate(call.device, bytes, stream, &ptr));
  if (call.device) framework_leave(call);
  if (is_refused) framework_fail_allocation("cupy");
  return is_refused ? NULL : ptr;
}

void hipmm_cupy_free(void *stream, void *ptr, int number)
{
  if (!ptr) return;
  struct framework_call call = framework_enter_known(number);
  if (!call.device) return;
  if (framework_deallocate(call.device, ptr, 0, stream)) framework_log_failure("cupy", "a block is not freed");
  framework_leave(call);
}
