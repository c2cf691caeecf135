/* SPDX-License-Identifier: MIT */
/* call_table.c: for each HIP function its name, the number of its calls, and its failures on schedule. Called by call.c
 * at the start of every call, by options.c for the option "fail", and by tests. It has a lock of its own. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

/* A failure that a test has scheduled. */
struct call_table_failure {
  struct call_table_failure *next;
  enum software_call call;
  uint64_t remaining; /* calls until it happens */
  hipError_t error;
};

#define CALL_NAME(name, flags)  #name,
#define CALL_FLAGS(name, flags) flags,
static const char *const call_table_names[] = {SOFTWARE_CALLS(CALL_NAME)};
static const unsigned char call_table_flags[] = {SOFTWARE_CALLS(CALL_FLAGS)};

static _Atomic uint64_t call_table_counts[SOFTWARE_N_CALLS];
static atomic_int call_table_scheduled[SOFTWARE_N_CALLS]; /* failures of this function that have not happened */
static struct call_table_failure *call_table_failures;    /* under call_table_lock */
static pthread_mutex_t call_table_lock = PTHREAD_MUTEX_INITIALIZER;

void software_call_table_lock(void)
{
  pthread_mutex_lock(&call_table_lock);
}

void software_call_table_unlock(void)
{
  pthread_mutex_unlock(&call_table_lock);
}

const char *software_call_name(enum software_call call)
{
  return call_table_names[call];
}

bool software_call_is_unsafe(enum software_call call)
{
  return call_table_flags[call] & SOFTWARE_UNSAFE;
}

static bool call_table_find(const char *name, enum software_call *call_out)
{
  for (size_t i = 0; name && i < SOFTWARE_N_CALLS; i++) {
    if (strcmp(call_table_names[i], name) == 0) {
      *call_out = (enum software_call)i;
      return true;
    }
  }
  return false;
}

/* ---- Counts ---------------------------------------------------------------------------------------------------- */

void software_call_count(enum software_call call)
{
  atomic_fetch_add_explicit(&call_table_counts[call], 1, memory_order_relaxed);
}

uint64_t hipmm_software_calls(const char *name)
{
  enum software_call call;
  return call_table_find(name, &call) ? atomic_load(&call_table_counts[call]) : 0;
}

const char *hipmm_software_call(size_t index, uint64_t *count_out)
{
  if (index >= SOFTWARE_N_CALLS) return NULL;
  if (count_out) *count_out = atomic_load(&call_table_counts[index]);
  return call_table_names[index];
}

void hipmm_software_reset_calls(void)
{
  for (size_t i = 0; i < SOFTWARE_N_CALLS; i++) atomic_store(&call_table_counts[i], 0);
}

/* ---- Failures on schedule -------------------------------------------------------------------------------------- */

hipError_t software_call_failure(enum software_call call)
{
  hipError_t error = hipSuccess;
  if (!atomic_load_explicit(&call_table_scheduled[call], memory_order_relaxed)) return error;
  pthread_mutex_lock(&call_table_lock);
  struct call_table_failure **link = &call_table_failures;
  while (*link) {
    struct call_table_failure *failure = *link;
    if (failure->call != call || --failure->remaining) {
      link = &failure->next;
      continue;
    }
    if (error == hipSuccess) error = failure->error;
    *link = failure->next;
    atomic_fetch_sub(&call_table_scheduled[call], 1);
    free(failure);
  }
  pthread_mutex_unlock(&call_table_lock);
  return error;
}

bool software_has_call(const char *name)
{
  enum software_call call;
  return call_table_find(name, &call);
}

bool hipmm_software_fail(const char *name, uint64_t nth, int code)
{
  enum software_call call;
  if (nth == 0 || !call_table_find(name, &call)) return false;
  struct call_table_failure *failure = malloc(sizeof *failure);
  if (!failure) return false;
  hipError_t usual = call_table_flags[call] & SOFTWARE_ALLOCATES ? hipErrorOutOfMemory : hipErrorUnknown;
  *failure = (struct call_table_failure){.call = call, .remaining = nth, .error = code ? (hipError_t)code : usual};
  pthread_mutex_lock(&call_table_lock);
  failure->next = call_table_failures;
  call_table_failures = failure;
  atomic_fetch_add(&call_table_scheduled[call], 1);
  pthread_mutex_unlock(&call_table_lock);
  return true;
}

void hipmm_software_fail_none(void)
{
  pthread_mutex_lock(&call_table_lock);
  while (call_table_failures) {
    struct call_table_failure *failure = call_table_failures;
    call_table_failures = failure->next;
    atomic_fetch_sub(&call_table_scheduled[failure->call], 1);
    free(failure);
  }
  pthread_mutex_unlock(&call_table_lock);
}
