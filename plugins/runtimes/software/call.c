/* SPDX-License-Identifier: MIT */
/* call.c: what every HIP function does first and last: it is counted, may have to fail on schedule, takes the lock, and
 * leaves its error behind for hipGetLastError. Never does anything that a particular function is for. */
#include "../../../core/base/cancel.h"
#include "internal.h"
#include <stdlib.h>
#include <string.h>

/* A failure that a test asked for. */
struct call_failure {
  struct call_failure *next;
  enum software_call call;
  uint64_t remaining; /* calls until it happens */
  hipError_t error;
};

#define CALL_NAME(name, allocates)      #name,
#define CALL_ALLOCATES(name, allocates) allocates,
static const char *const call_names[] = {SOFTWARE_CALLS(CALL_NAME)};
static const bool call_allocates[] = {SOFTWARE_CALLS(CALL_ALLOCATES)};

static _Atomic uint64_t call_counts[SOFTWARE_N_CALLS];
static atomic_int call_armed[SOFTWARE_N_CALLS]; /* failures that wait for this function */
static struct call_failure *call_failures;      /* under call_lock */
static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool call_forked;
static pthread_once_t call_once = PTHREAD_ONCE_INIT;
static _Thread_local hipError_t call_last_error;
static _Thread_local int call_cancel; /* for cancel_allow() at the end of the call */

static void call_before_fork(void)
{
  pthread_mutex_lock(&software.lock);
  pthread_mutex_lock(&call_lock);
}

static void call_after_fork(void)
{
  pthread_mutex_unlock(&call_lock);
  pthread_mutex_unlock(&software.lock);
}

/* As with a GPU, the child of a process that used the device cannot use it; but nothing may hang. */
static void call_in_child(void)
{
  call_after_fork();
  atomic_store(&call_forked, true);
}

static void call_initialise(void)
{
  software_initialise();
  pthread_atfork(call_before_fork, call_after_fork, call_in_child);
}

/* The failure that the present call of `call` has come to; hipSuccess if none. */
static hipError_t call_fail(enum software_call call)
{
  hipError_t error = hipSuccess;
  pthread_mutex_lock(&call_lock);
  struct call_failure **link = &call_failures;
  while (*link) {
    struct call_failure *failure = *link;
    if (failure->call != call || --failure->remaining) {
      link = &failure->next;
      continue;
    }
    if (error == hipSuccess) error = failure->error;
    *link = failure->next;
    atomic_fetch_sub(&call_armed[call], 1);
    free(failure);
  }
  pthread_mutex_unlock(&call_lock);
  return error;
}

hipError_t software_enter(enum software_call call)
{
  software_prepare();
  atomic_fetch_add_explicit(&call_counts[call], 1, memory_order_relaxed);
  if (software_is_misconfigured()) return hipErrorNotInitialized;
  if (atomic_load_explicit(&call_forked, memory_order_relaxed)) return hipErrorNotInitialized;
  if (atomic_load_explicit(&call_armed[call], memory_order_relaxed)) return call_fail(call);
  return hipSuccess;
}

hipError_t software_leave(hipError_t error)
{
  if (error != hipSuccess) call_last_error = error;
  return error;
}

void software_prepare(void)
{
  pthread_once(&call_once, call_initialise);
}

hipError_t software_begin(enum software_call call)
{
  hipError_t error = software_enter(call);
  int cancel = cancel_forbid(); /* waits are cancellation points, and end with the lock held */
  pthread_mutex_lock(&software.lock);
  call_cancel = cancel;
  return error;
}

hipError_t software_end(hipError_t error)
{
  int cancel = call_cancel;
  pthread_mutex_unlock(&software.lock);
  cancel_allow(cancel);
  return software_leave(error);
}

hipError_t software_begin_on_device(enum software_call call, int *device_out)
{
  hipError_t error = software_begin(call);
  *device_out = software_current_device();
  return error != hipSuccess ? error : software.devices[*device_out].fault;
}

const char *software_call_name(enum software_call call)
{
  return call_names[call];
}

hipError_t software_last_error(bool clear)
{
  hipError_t error = call_last_error;
  if (clear) call_last_error = hipSuccess;
  return error;
}

static bool call_find(const char *name, enum software_call *call_out)
{
  for (size_t i = 0; name && i < SOFTWARE_N_CALLS; i++) {
    if (strcmp(call_names[i], name) == 0) {
      *call_out = (enum software_call)i;
      return true;
    }
  }
  return false;
}

uint64_t hipmm_software_calls(const char *name)
{
  enum software_call call;
  return call_find(name, &call) ? atomic_load(&call_counts[call]) : 0;
}

const char *hipmm_software_call(size_t index, uint64_t *count_out)
{
  if (index >= SOFTWARE_N_CALLS) return NULL;
  if (count_out) *count_out = atomic_load(&call_counts[index]);
  return call_names[index];
}

void hipmm_software_reset_calls(void)
{
  for (size_t i = 0; i < SOFTWARE_N_CALLS; i++) atomic_store(&call_counts[i], 0);
}

bool hipmm_software_fail(const char *name, uint64_t nth, int code)
{
  enum software_call call;
  if (nth == 0 || !call_find(name, &call)) return false;
  struct call_failure *failure = malloc(sizeof *failure);
  if (!failure) return false;
  hipError_t usual = call_allocates[call] ? hipErrorOutOfMemory : hipErrorUnknown;
  *failure = (struct call_failure){.call = call, .remaining = nth, .error = code ? (hipError_t)code : usual};
  pthread_mutex_lock(&call_lock);
  failure->next = call_failures;
  call_failures = failure;
  atomic_fetch_add(&call_armed[call], 1);
  pthread_mutex_unlock(&call_lock);
  return true;
}

void hipmm_software_fail_none(void)
{
  pthread_mutex_lock(&call_lock);
  while (call_failures) {
    struct call_failure *failure = call_failures;
    call_failures = failure->next;
    atomic_fetch_sub(&call_armed[failure->call], 1);
    free(failure);
  }
  pthread_mutex_unlock(&call_lock);
}

hipError_t hipGetLastError(void)
{
  hipError_t error = software_enter(SOFTWARE_hipGetLastError);
  return error != hipSuccess ? error : software_last_error(true);
}

hipError_t hipPeekAtLastError(void)
{
  hipError_t error = software_enter(SOFTWARE_hipPeekAtLastError);
  return error != hipSuccess ? error : software_last_error(false);
}
