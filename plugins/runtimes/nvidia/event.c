/* SPDX-License-Identifier: MIT */
/* event.c: events. Called by applications, and by pools for each block that changes streams, so record and query only
 * call the driver. */
#include "nvidia.h"

_Static_assert(hipEventDefault == CU_EVENT_DEFAULT && hipEventBlockingSync == CU_EVENT_BLOCKING_SYNC &&
                   hipEventDisableTiming == CU_EVENT_DISABLE_TIMING && hipEventInterprocess == CU_EVENT_INTERPROCESS,
               "HIP and CUDA number these flags alike");

/* HIP's other flags say to whom a release must be visible; CUDA's events are always visible everywhere. */
static const unsigned event_release_flags =
    hipEventReleaseToDevice | hipEventReleaseToSystem | 0x20000000; /* hipEventDisableSystemFence, HIP 5.3 */

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned int flags)
{
  const unsigned cudas = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess;
  if (!nvidia_ready()) return nvidia_last_error;
  if (!event || (flags & ~(cudas | event_release_flags))) return nvidia_fail(hipErrorInvalidValue);
  CUevent created = NULL;
  CUresult result = nvidia_call(nvidia_cuda.EventCreate(&created, flags & cudas));
  if (result == CUDA_SUCCESS) *event = (hipEvent_t)created;
  return nvidia_end(result);
}

hipError_t hipEventCreate(hipEvent_t *event)
{
  return hipEventCreateWithFlags(event, hipEventDefault);
}

hipError_t hipEventDestroy(hipEvent_t event)
{
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_call(nvidia_cuda.EventDestroy(nvidia_event(event))));
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_call(nvidia_cuda.EventRecord(nvidia_event(event), nvidia_stream(stream))));
}

hipError_t hipEventQuery(hipEvent_t event)
{
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_call(nvidia_cuda.EventQuery(nvidia_event(event))));
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_call(nvidia_cuda.EventSynchronize(nvidia_event(event))));
}

hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!milliseconds) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.EventElapsedTime) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.EventElapsedTime(milliseconds, nvidia_event(start), nvidia_event(stop))));
}
