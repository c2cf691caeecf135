/* SPDX-License-Identifier: MIT */
/* frameworks.c: see frameworks.h, and the functions that hipmm's Python package finds in this object. In a process of
 * `hipmm run` the package uses them in place of its own libhipmm, so that there is one stack for each device: the memory of
 * PyTorch, CuPy, Numba and RMM is served once, by the stack that serves the process's other calls, and is in its report. */
#include "frameworks.h"

#include "blocks.h"
#include "init.h"
#include "next_symbol.h"

#include <hipmm/buffer.h>
#include <hipmm/control.h>
#include <hipmm/inspect.h>
#include <hipmm/memory.h>
#include <hipmm/reserve.h>
#include <hipmm/share.h>
#include <hipmm/span.h>
#include <hipmm/spill.h>
#include <hipmm/stream.h>
#include <hipmm/torch.h>
#include <hipmm/version.h>
#include <pthread.h>
#include <string.h>

static const char *const names[FRAMEWORK_ROWS] = {
    [FRAMEWORK_TORCH_MALLOC] = "torch: malloc", [FRAMEWORK_TORCH_FREE] = "torch: free",
    [FRAMEWORK_CUPY_MALLOC] = "cupy: malloc",   [FRAMEWORK_CUPY_FREE] = "cupy: free",
    [FRAMEWORK_NUMBA_MALLOC] = "numba: malloc", [FRAMEWORK_NUMBA_FREE] = "numba: free",
    [FRAMEWORK_RMM_MALLOC] = "rmm: malloc",     [FRAMEWORK_RMM_FREE] = "rmm: free"};

static atomic_uint_fast64_t calls[FRAMEWORK_ROWS], failures[FRAMEWORK_ROWS];

const char *frameworks_name(enum frameworks_row row)
{
  return names[row];
}

struct hook_counts frameworks_counts(enum frameworks_row row)
{
  return (struct hook_counts){.calls = atomic_load(&calls[row]), .failed = atomic_load(&failures[row])};
}

/* The counts so far are the parent's. */
static void frameworks_enter_child(void)
{
  for (int row = 0; row < FRAMEWORK_ROWS; row++) {
    atomic_store(&calls[row], 0);
    atomic_store(&failures[row], 0);
  }
}

__attribute__((constructor)) static void frameworks_watch_forks(void)
{
  pthread_atfork(NULL, NULL, frameworks_enter_child);
}

/* ---- Calls of frameworks ---- */

/* PyTorch's function for failures throws a C++ exception through the functions below, so a call is ended by a cleanup. */
struct frameworks_call {
  enum frameworks_row row;
  struct served_device *served; /* NULL: its memory is not counted */
  int64_t bytes;                /* below zero: freed */
  bool is_failed;
  bool is_left_out; /* failed, and the caller has more to try */
};

static struct frameworks_call frameworks_begin(enum frameworks_row row, int device, int64_t bytes)
{
  reentry_enter();
  enum family family = next_find(HOOK_cudaMalloc) ? FAMILY_CUDA : FAMILY_HIP;
  struct served_device *served = init_ready_for_python() ? devices_get(family, device) : NULL;
  return (struct frameworks_call){.row = row, .served = served, .bytes = bytes, .is_failed = bytes > 0};
}

static void frameworks_end(struct frameworks_call *call)
{
  int64_t bytes = call->bytes < 0 ? -call->bytes : call->bytes;
  atomic_fetch_add_explicit(&calls[call->row], call->is_left_out ? 0 : 1, memory_order_relaxed);
  if (call->is_failed)
    atomic_fetch_add_explicit(&failures[call->row], 1, memory_order_relaxed);
  else if (call->served && bytes && !call->is_left_out)
    blocks_count(&call->served->usage[KIND_DEVICE], bytes, call->bytes < 0 ? -1 : 1);
  reentry_leave();
}

#define FRAMEWORK_CALL(row, device, bytes) \
  __attribute__((unused, cleanup(frameworks_end))) struct frameworks_call call = frameworks_begin(row, device, bytes)

#pragma GCC visibility push(default)

void *hipmm_run_torch_malloc(ssize_t bytes, int device, hipmm_stream_t stream);
void hipmm_run_torch_free(void *ptr, ssize_t bytes, int device, hipmm_stream_t stream);
void hipmm_run_numba(int device, int64_t bytes, int is_failed);
void *hipmm_run_function(const char *name);
int hipmm_run_attach(int version);

void *hipmm_run_torch_malloc(ssize_t bytes, int device, hipmm_stream_t stream)
{
  FRAMEWORK_CALL(FRAMEWORK_TORCH_MALLOC, device, bytes);
  void *ptr = hipmm_torch_malloc(bytes, device, stream);
  call.is_failed = bytes && !ptr;
  return ptr;
}

void hipmm_run_torch_free(void *ptr, ssize_t bytes, int device, hipmm_stream_t stream)
{
  FRAMEWORK_CALL(FRAMEWORK_TORCH_FREE, device, ptr ? -bytes : 0);
  hipmm_torch_free(ptr, bytes, device, stream);
}

/* Counts an allocation of hipmm.numba, or a free of -bytes. */
void hipmm_run_numba(int device, int64_t bytes, int is_failed)
{
  FRAMEWORK_CALL(bytes < 0 ? FRAMEWORK_NUMBA_FREE : FRAMEWORK_NUMBA_MALLOC, device, bytes);
  call.is_failed = is_failed;
}

#pragma GCC visibility pop

static enum hipmm_status frameworks_torch_try_malloc(size_t bytes, int device, hipmm_stream_t stream, void **ptr_out)
{
  FRAMEWORK_CALL(FRAMEWORK_TORCH_MALLOC, device, (int64_t)bytes);
  enum hipmm_status status = hipmm_torch_try_malloc(bytes, device, stream, ptr_out);
  call.is_failed = false;
  call.is_left_out = status != HIPMM_OK;
  return status;
}

/* While `passes`, what the thread asks of the runtime is the runtime's: memory that other processes can open. */
static void frameworks_pass(int passes)
{
  if (passes)
    reentry_enter();
  else
    reentry_leave();
}

/* The bytes of CuPy's live blocks: its pool's figures are not to count what the program asks the runtime for. */
static atomic_int_fast64_t cupy_bytes[DEVICES_MOST];

static void frameworks_count_cupy(int device, int64_t bytes)
{
  if (device >= 0 && device < DEVICES_MOST) atomic_fetch_add_explicit(&cupy_bytes[device], bytes, memory_order_relaxed);
}

static int64_t frameworks_cupy_bytes(int device)
{
  return device >= 0 && device < DEVICES_MOST ? atomic_load(&cupy_bytes[device]) : 0;
}

/* In the place of hipmm_device_held_bytes(): without the live blocks of others, such as cuBLAS, which PyTorch's figures do not
 * have when the driver serves them. */
static enum hipmm_status frameworks_torch_held_bytes(int device, size_t *now_out, size_t *peak_out)
{
  size_t now, peak, live = 0;
  enum hipmm_status status = hipmm_device_held_bytes(device, &now, &peak);
  if (!status) status = hipmm_torch_memory(device, &live, NULL);
  if (status) return status;
  const struct served_device *served = devices_if_served(device);
  int64_t others = served ? atomic_load(&served->usage[KIND_DEVICE].bytes) - (int64_t)live : 0;
  if (others > 0) { /* else another thread's block is counted at one place yet */
    now -= (size_t)others < now ? (size_t)others : now;
    peak -= (size_t)others < peak ? (size_t)others : peak;
  }
  if (now_out) *now_out = now;
  if (peak_out) *peak_out = peak > now ? peak : now;
  return HIPMM_OK;
}

static void *frameworks_cupy_malloc(void *stream, size_t bytes, int device)
{
  FRAMEWORK_CALL(FRAMEWORK_CUPY_MALLOC, device, (int64_t)bytes);
  void *ptr = hipmm_cupy_malloc(stream, bytes, device);
  call.is_failed = bytes && !ptr;
  if (ptr) frameworks_count_cupy(device, (int64_t)bytes);
  return ptr;
}

/* CuPy does not give the size. */
static void frameworks_cupy_free(void *stream, void *ptr, int device)
{
  size_t bytes;
  hipmm_torch_base_alloc(ptr, &bytes);
  FRAMEWORK_CALL(FRAMEWORK_CUPY_FREE, device, -(int64_t)bytes);
  frameworks_count_cupy(device, -(int64_t)bytes);
  hipmm_cupy_free(stream, ptr, device);
}

/* The package's bridge for RMM calls these in place of hipmm_allocate() and hipmm_deallocate(). */
static enum hipmm_status frameworks_rmm_allocate(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                                 void **ptr_out)
{
  FRAMEWORK_CALL(FRAMEWORK_RMM_MALLOC, hipmm_resource_device(resource), (int64_t)bytes);
  enum hipmm_status status = hipmm_allocate(resource, bytes, stream, ptr_out);
  call.is_failed = status != HIPMM_OK;
  return status;
}

static enum hipmm_status frameworks_rmm_deallocate(struct hipmm_resource *resource, void *ptr, size_t bytes,
                                                   hipmm_stream_t stream)
{
  FRAMEWORK_CALL(FRAMEWORK_RMM_FREE, hipmm_resource_device(resource), -(int64_t)bytes);
  enum hipmm_status status = hipmm_deallocate(resource, ptr, bytes, stream);
  call.is_failed = status != HIPMM_OK;
  return status;
}

/* ---- Functions for the package ----
 *
 * The public functions are not exported: a program that is linked to libhipmm keeps its own. */

static atomic_bool is_attached;

struct frameworks_function {
  const char *name;
  void (*function)(void);
};

static const struct frameworks_function functions[] = {
    /* In place of those of the same name; hipmm_run_torch_held_bytes() is of the bridge of hipmm.torch. */
    {"hipmm_torch_malloc", (void (*)(void))hipmm_run_torch_malloc},
    {"hipmm_torch_try_malloc", (void (*)(void))frameworks_torch_try_malloc},
    {"hipmm_torch_free", (void (*)(void))hipmm_run_torch_free},
    {"hipmm_cupy_malloc", (void (*)(void))frameworks_cupy_malloc},
    {"hipmm_cupy_free", (void (*)(void))frameworks_cupy_free},
    /* In addition to them. */
    {"hipmm_run_torch_held_bytes", (void (*)(void))frameworks_torch_held_bytes},
    {"hipmm_run_pass", (void (*)(void))frameworks_pass},
    {"hipmm_run_rmm_allocate", (void (*)(void))frameworks_rmm_allocate},
    {"hipmm_run_rmm_deallocate", (void (*)(void))frameworks_rmm_deallocate},
    {"hipmm_run_cupy_bytes", (void (*)(void))frameworks_cupy_bytes},
#define FRAMEWORK_FUNCTION(name) {#name, (void (*)(void))(name)},
#include "functions.inc"
};

/* A public function of hipmm; NULL if there is none of this name. */
void *hipmm_run_function(const char *name)
{
  void *address = NULL;
  for (size_t i = 0; i < sizeof functions / sizeof *functions && !address; i++)
    if (!strcmp(functions[i].name, name)) memcpy(&address, &functions[i].function, sizeof address);
  return address;
}

/* Whether the package is of this object's version, and so can use its functions. */
int hipmm_run_attach(int version)
{
  if (version != HIPMM_VERSION) return 0;
  init_set_places();
  atomic_store(&is_attached, true);
  return 1;
}

bool frameworks_are_attached(void)
{
  return atomic_load_explicit(&is_attached, memory_order_relaxed);
}
