/* SPDX-License-Identifier: MIT */
/* context.c: which device is current. HIP has devices, and the driver has contexts. As in CUDA's own runtime, a device
 * stands for its primary context, so both runtimes see each other's choice and share memory, streams and events. Called
 * by applications, and by nvidia_again(). A query of the current device never creates a context, since a context takes
 * hundreds of megabytes of the device. */
#include "nvidia.h"

#include <pthread.h>

static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER; /* for the first use of a primary context */

/* The context that hipSetDevice gave to a thread without one, for as long as the thread has it. */
static _Thread_local CUcontext context_on_loan;

static CUresult context_retain(int device, CUcontext *context_out)
{
  CUcontext context = NULL;
  CUresult result = nvidia_cuda.DevicePrimaryCtxRetain(&context, device);
  if (result != CUDA_SUCCESS) return result;
  atomic_store_explicit(&nvidia_contexts[device], context, memory_order_release);
  *context_out = context;
  return CUDA_SUCCESS;
}

CUresult nvidia_primary_context(int device, CUcontext *context_out)
{
  if (!nvidia_device_exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context_out = atomic_load_explicit(&nvidia_contexts[device], memory_order_acquire);
  if (*context_out) return CUDA_SUCCESS;
  pthread_mutex_lock(&context_lock);
  *context_out = atomic_load(&nvidia_contexts[device]);
  CUresult result = *context_out ? CUDA_SUCCESS : context_retain(device, context_out);
  pthread_mutex_unlock(&context_lock);
  return result;
}

bool nvidia_bind_thread(CUresult *result)
{
  CUcontext context = NULL;
  if (nvidia_cuda.CtxGetCurrent(&context) != CUDA_SUCCESS || context) return false;
  CUresult bound = nvidia_primary_context(0, &context);
  if (bound == CUDA_SUCCESS) bound = nvidia_cuda.CtxSetCurrent(context);
  if (bound != CUDA_SUCCESS) *result = bound;
  return bound == CUDA_SUCCESS;
}

hipError_t hipGetDevice(int *device)
{
  CUdevice current;
  if (!nvidia_ready()) return nvidia_last_error;
  if (!device) return nvidia_fail(hipErrorInvalidValue);
  CUresult result = nvidia_cuda.CtxGetDevice(&current);
  if (result == CUDA_SUCCESS)
    *device = current;
  else if (result == CUDA_ERROR_INVALID_CONTEXT)
    *device = 0; /* the thread has no context, and will get that of device 0 */
  else
    return nvidia_end(result);
  return hipSuccess;
}

/* Whether a thread that returns to device 0 can have no context again, instead of a new one of device 0. */
static bool context_can_be_returned(int device, CUcontext current)
{
  unsigned flags;
  int is_active = 1;
  if (device != 0 || !current || current != context_on_loan) return false;
  return nvidia_cuda.DevicePrimaryCtxGetState(0, &flags, &is_active) == CUDA_SUCCESS && !is_active;
}

static CUresult context_set(int device)
{
  CUcontext context = NULL, current = NULL;
  CUresult result = nvidia_cuda.CtxGetCurrent(&current);
  if (result != CUDA_SUCCESS) return result;
  if (!context_can_be_returned(device, current)) result = nvidia_primary_context(device, &context);
  if (result != CUDA_SUCCESS || context == current) return result;
  result = nvidia_cuda.CtxSetCurrent(context);
  bool was_bare = !current || current == context_on_loan;
  if (result == CUDA_SUCCESS) context_on_loan = was_bare && device != 0 ? context : NULL;
  return result;
}

hipError_t hipSetDevice(int device)
{
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(context_set(device));
}
