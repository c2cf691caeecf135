/* SPDX-License-Identifier: MIT */
/* call.c: what every HIP function does first and last: it counts the call, fails if a failure is scheduled, takes the
 * lock, and stores its error for hipGetLastError. Nothing here belongs to one HIP function alone, but for those that
 * read an error. */
#include "../../common/hip_error.h"
#include "graph.h"

static atomic_bool call_forked;
static pthread_once_t call_once = PTHREAD_ONCE_INIT;
static _Thread_local hipError_t call_last_error;

static void call_before_fork(void)
{
  pthread_mutex_lock(&software.lock);
  software_call_table_lock();
}

static void call_after_fork(void)
{
  software_call_table_unlock();
  pthread_mutex_unlock(&software.lock);
}

/* As with a GPU, the child of a process that used the device cannot use it; but no call may hang. */
static void call_in_child(void)
{
  call_after_fork();
  atomic_store(&call_forked, true);
}

static void call_initialise(void)
{
  software_version_find();
  software_options_initialise();
  for (int device = 0; device < SOFTWARE_MAX_DEVICES; device++) software_state_reset_device(device);
  pthread_atfork(call_before_fork, call_after_fork, call_in_child);
}

void software_prepare(void)
{
  pthread_once(&call_once, call_initialise);
}

hipError_t software_enter(enum software_call call)
{
  software_prepare();
  software_call_count(call);
  if (software_is_misconfigured()) return hipErrorNotInitialized;
  if (atomic_load_explicit(&call_forked, memory_order_relaxed)) return hipErrorNotInitialized;
  return software_call_failure(call);
}

hipError_t software_leave(hipError_t error)
{
  if (error != hipSuccess) call_last_error = error;
  return error;
}

/* Whether a call that is not safe is forbidden in the calling thread, by the mode of the capture and that of the thread. */
static bool call_is_forbidden(const struct software_capture *capture)
{
  bool is_own = pthread_equal(capture->thread, pthread_self());
  switch (software_capture_mode()) {
  case hipStreamCaptureModeRelaxed: return false;
  case hipStreamCaptureModeThreadLocal: return is_own && capture->mode != hipStreamCaptureModeRelaxed;
  default:
    return capture->mode == hipStreamCaptureModeGlobal || (is_own && capture->mode != hipStreamCaptureModeRelaxed);
  }
}

hipError_t software_check_captures(void)
{
  hipError_t error = hipSuccess;
  for (struct software_capture *capture = software.captures; capture; capture = capture->next) {
    if (!call_is_forbidden(capture)) continue;
    capture->is_invalid = true;
    error = hipErrorStreamCaptureUnsupported;
  }
  return error;
}

hipError_t software_begin(enum software_call call)
{
  hipError_t error = software_enter(call);
  pthread_mutex_lock(&software.lock);
  if (error == hipSuccess && software.captures && software_call_is_unsafe(call)) error = software_check_captures();
  return error;
}

hipError_t software_end(hipError_t error)
{
  pthread_mutex_unlock(&software.lock);
  return software_leave(error);
}

hipError_t software_begin_on_device(enum software_call call, int *device_out)
{
  hipError_t error = software_begin(call);
  *device_out = software_current_device();
  return error != hipSuccess ? error : software.devices[*device_out].fault;
}

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

hipError_t hipGetLastError(void)
{
  hipError_t error = software_enter(SOFTWARE_hipGetLastError);
  if (error != hipSuccess) return error;
  error = call_last_error;
  call_last_error = hipSuccess;
  return error;
}

hipError_t hipPeekAtLastError(void)
{
  hipError_t error = software_enter(SOFTWARE_hipPeekAtLastError);
  return error != hipSuccess ? error : call_last_error;
}

const char *hipGetErrorName(hipError_t error)
{
  software_enter(SOFTWARE_hipGetErrorName);
  return hip_error_name((int)error);
}

const char *hipGetErrorString(hipError_t error)
{
  software_enter(SOFTWARE_hipGetErrorString);
  return hip_error_text((int)error);
}
