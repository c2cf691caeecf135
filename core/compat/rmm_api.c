/* SPDX-License-Identifier: MIT */
/* rmm_api.c: RMM 0.12's C interface over hipmm's public functions: librmm_compat. See hipmm/compat/rmm_api.h. */
#include <hipmm/compat/rmm_api.h>

#include "../base/output_file.h"

#include <hipmm/inspect.h>
#include <hipmm/memory.h>
#include <hipmm/stream.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* initialisation and finalisation, one at a time */
static atomic_bool is_initialized, is_logging;
static struct hipmm_rmm_options options_in_use; /* `devices` is a copy */

/* ---- Errors ---- */

const char *rmmGetErrorString(rmmError_t errcode)
{
  static const char *const names[N_RMM_ERROR] = {
      "RMM_SUCCESS",
      "RMM_ERROR_CUDA_ERROR",
      "RMM_ERROR_INVALID_ARGUMENT",
      "RMM_ERROR_NOT_INITIALIZED",
      "RMM_ERROR_OUT_OF_MEMORY",
      "RMM_ERROR_UNKNOWN",
      "RMM_ERROR_IO",
  };
  return (unsigned)errcode < N_RMM_ERROR ? names[errcode] : "Internal error. Unknown error code.";
}

static rmmError_t rmm_api_error(enum hipmm_status status)
{
  switch (status) {
  case HIPMM_OK: return RMM_SUCCESS;
  case HIPMM_E_OUT_OF_MEMORY:
  case HIPMM_E_LIMIT: return RMM_ERROR_OUT_OF_MEMORY;
  case HIPMM_E_ARGUMENT:
  case HIPMM_E_POINTER:
  case HIPMM_E_SIZE:
  case HIPMM_E_SYNTAX:
  case HIPMM_E_CONFIG: return RMM_ERROR_INVALID_ARGUMENT;
  case HIPMM_E_IO: return RMM_ERROR_IO;
  case HIPMM_E_STATE: return RMM_ERROR_NOT_INITIALIZED;
  case HIPMM_E_NO_DEVICE:
  case HIPMM_E_NOT_SUPPORTED:
  case HIPMM_E_HIP: return RMM_ERROR_CUDA_ERROR;
  default: return RMM_ERROR_UNKNOWN;
  }
}

/* ---- The log of RMM 0.12: events in host memory, written as CSV on request ---- */

enum rmm_event { RMM_EVENT_ALLOC, RMM_EVENT_REALLOC, RMM_EVENT_FREE };

struct rmm_log_entry {
  enum rmm_event event;
  int device;
  void *ptr;
  size_t bytes;
  hipmm_stream_t stream;
  int64_t start_ns, end_ns; /* rmm_log_now() */
  int64_t live;             /* allocations, after the event */
  char *file;               /* a copy; NULL: none */
  unsigned line;
};

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rmm_log_entry *entries;
static size_t n_entries, capacity;
static int64_t live;

/* Nanoseconds since its first call. */
static int64_t rmm_log_now(void)
{
  static int64_t begin;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec, none = 0;
  __atomic_compare_exchange_n(&begin, &none, ns, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return ns - __atomic_load_n(&begin, __ATOMIC_RELAXED);
}

static bool rmm_log_grow(void)
{
  if (n_entries < capacity) return true;
  size_t larger = capacity ? 2 * capacity : 1024;
  struct rmm_log_entry *grown = realloc(entries, larger * sizeof *grown);
  if (!grown) return false;
  entries = grown;
  capacity = larger;
  return true;
}

/* Adds an event and copies its file. `change` of live allocations: 1, 0 or -1. Without host memory the event is lost. */
static void rmm_log_add(struct rmm_log_entry entry, int change)
{
  if (entry.file) entry.file = strdup(entry.file);
  pthread_mutex_lock(&log_lock);
  live += change;
  entry.live = live;
  bool has_room = rmm_log_grow();
  if (has_room) entries[n_entries++] = entry;
  pthread_mutex_unlock(&log_lock);
  if (!has_room) free(entry.file);
}

static void rmm_log_clear(void)
{
  pthread_mutex_lock(&log_lock);
  for (size_t i = 0; i < n_entries; i++) free(entries[i].file);
  free(entries);
  entries = NULL;
  n_entries = capacity = 0;
  live = 0;
  pthread_mutex_unlock(&log_lock);
}

/* As C++ streams write it: 0 for NULL. */
static const char *rmm_log_address(const void *address, char *text, size_t bytes)
{
  snprintf(text, bytes, address ? "%p" : "0", address);
  return text;
}

/* Seconds as an exact decimal number, the same in every locale. */
static const char *rmm_log_seconds(int64_t ns, char *text, size_t bytes)
{
  snprintf(text, bytes, "%" PRId64 ".%09" PRId64, ns / 1000000000, ns % 1000000000);
  return text;
}

static void rmm_log_write_entry(FILE *file, const struct rmm_log_entry *entry)
{
  static const char *const events[] = {"Alloc", "Realloc", "Free"};
  char address[32], stream[32], start[32], end[32], elapsed[32];
  fprintf(file, "%s,%d,%s,%s,%zu,0,0,%" PRId64 ",%s,%s,%s,%s:%u\n", events[entry->event], entry->device,
          rmm_log_address(entry->ptr, address, sizeof address), rmm_log_address(entry->stream, stream, sizeof stream),
          entry->bytes, entry->live, rmm_log_seconds(entry->start_ns, start, sizeof start),
          rmm_log_seconds(entry->end_ns, end, sizeof end),
          rmm_log_seconds(entry->end_ns - entry->start_ns, elapsed, sizeof elapsed), entry->file ? entry->file : "",
          entry->line);
}

/* The log as CSV, which the caller frees; NULL without host memory. */
static char *rmm_log_text(size_t *bytes_out)
{
  char *text = NULL;
  FILE *file = open_memstream(&text, bytes_out);
  if (!file) return NULL;
  fputs("Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current Allocs,Start,End,Elapsed,"
        "Location\n",
        file);
  pthread_mutex_lock(&log_lock);
  for (size_t i = 0; i < n_entries; i++) rmm_log_write_entry(file, &entries[i]);
  pthread_mutex_unlock(&log_lock);
  bool is_whole = !ferror(file);
  if (!fclose(file) && is_whole) return text;
  free(text);
  return NULL;
}

/* ---- Initialisation ---- */

/* The graph that stands for the options. */
static void rmm_api_write_graph(const struct hipmm_rmm_options *options, char *text, size_t bytes)
{
  const char *source = options->allocation_mode & CudaManagedMemory ? "\"managed\"" : "\"device\"";
  if (!(options->allocation_mode & PoolAllocation)) {
    snprintf(text, bytes, "{\"stack\": [%s]}", source);
    return;
  }
  char initial[32] = "\"50%\"";
  if (options->initial_pool_size) snprintf(initial, sizeof initial, "%zu", options->initial_pool_size);
  snprintf(text, bytes, "{\"stack\": [{\"type\": \"pool\", \"initial_size\": %s}, %s%s]}", initial,
           options->allocation_mode & CudaManagedMemory ? "\"prefetch\", " : "", source);
}

static enum hipmm_status rmm_api_init_hipmm(const struct hipmm_rmm_options *options)
{
  char graph[160];
  const char *replaced = secure_getenv("HIPMM_CONFIG");
  if (hipmm_is_initialized() || (replaced && *replaced)) return hipmm_init_if_needed();
  rmm_api_write_graph(options, graph, sizeof graph);
  return hipmm_init_from_string(graph);
}

/* Builds the stacks, so that their pools begin with their initial size. */
static enum hipmm_status rmm_api_build_stacks(const struct hipmm_rmm_options *options)
{
  struct hipmm_resource *resource;
  enum hipmm_status status = HIPMM_OK;
  if (!options->n_devices) {
    status = hipmm_resource_get_current(&resource);
    if (!status) hipmm_resource_release(resource);
  }
  for (size_t i = 0; i < options->n_devices && !status; i++) {
    status = hipmm_resource_get_for_device(options->devices[i], &resource);
    if (!status) hipmm_resource_release(resource);
  }
  return status;
}

/* Keeps a copy of the options. False without host memory. */
static bool rmm_api_store(const struct hipmm_rmm_options *options)
{
  int *devices = NULL;
  if (options->n_devices) {
    devices = malloc(options->n_devices * sizeof *devices);
    if (!devices) return false;
    memcpy(devices, options->devices, options->n_devices * sizeof *devices);
  }
  free((void *)options_in_use.devices);
  options_in_use = *options;
  options_in_use.devices = devices;
  return true;
}

rmmError_t hipmm_rmm_initialize(const struct hipmm_rmm_options *options)
{
  static const struct hipmm_rmm_options defaults;
  if (!options) options = &defaults;
  if (options->allocation_mode & ~(PoolAllocation | CudaManagedMemory) || (options->n_devices && !options->devices))
    return RMM_ERROR_INVALID_ARGUMENT;
  pthread_mutex_lock(&lock);
  rmmError_t error = RMM_SUCCESS;
  if (!atomic_load(&is_initialized)) {
    enum hipmm_status status = rmm_api_init_hipmm(options);
    error = rmm_api_error(status);
    if (!status) {
      error = rmm_api_error(rmm_api_build_stacks(options));
      if (!error && !rmm_api_store(options)) error = RMM_ERROR_OUT_OF_MEMORY;
      if (error) (void)hipmm_finalize();
    }
    if (!error) {
      rmm_log_now();
      atomic_store(&is_logging, options->enable_logging != 0);
      atomic_store(&is_initialized, true);
    }
  }
  pthread_mutex_unlock(&lock);
  return error;
}

int hipmm_rmm_is_initialized(struct hipmm_rmm_options *options_out)
{
  pthread_mutex_lock(&lock);
  if (options_out) *options_out = options_in_use;
  int answer = atomic_load(&is_initialized);
  pthread_mutex_unlock(&lock);
  return answer;
}

rmmError_t rmmFinalize(void)
{
  pthread_mutex_lock(&lock);
  enum hipmm_status status = HIPMM_OK;
  if (atomic_load(&is_initialized)) {
    atomic_store(&is_initialized, false);
    atomic_store(&is_logging, false);
    rmm_log_clear();
    status = hipmm_finalize();
  }
  pthread_mutex_unlock(&lock);
  return rmm_api_error(status);
}

/* ---- Memory ---- */

/* Before a call: when it begins, if the log is on. */
static struct rmm_log_entry rmm_api_begin(enum rmm_event event, size_t bytes, hipmm_stream_t stream, const char *file,
                                          unsigned line)
{
  struct rmm_log_entry entry = {.event = event, .bytes = bytes, .stream = stream, .line = line};
  if (!atomic_load_explicit(&is_logging, memory_order_relaxed)) return entry;
  entry.file = (char *)file;
  entry.start_ns = rmm_log_now();
  return entry;
}

static void rmm_api_end(struct rmm_log_entry entry, void *ptr, int change)
{
  if (!atomic_load_explicit(&is_logging, memory_order_relaxed)) return;
  entry.ptr = ptr;
  entry.end_ns = rmm_log_now();
  if (hipmm_device_current(&entry.device)) entry.device = 0;
  rmm_log_add(entry, change);
}

rmmError_t rmmAlloc(void **ptr, size_t size, hipmm_stream_t stream, const char *file, unsigned int line)
{
  if (ptr) *ptr = NULL;
  if (!atomic_load(&is_initialized)) return RMM_ERROR_NOT_INITIALIZED;
  if (!ptr) return size ? RMM_ERROR_INVALID_ARGUMENT : RMM_SUCCESS;
  struct rmm_log_entry entry = rmm_api_begin(RMM_EVENT_ALLOC, size, stream, file, line);
  enum hipmm_status status = hipmm_allocate(NULL, size, stream, ptr);
  rmm_api_end(entry, *ptr, *ptr ? 1 : 0);
  return rmm_api_error(status);
}

rmmError_t rmmRealloc(void **ptr, size_t new_size, hipmm_stream_t stream, const char *file, unsigned int line)
{
  if (!atomic_load(&is_initialized)) return RMM_ERROR_NOT_INITIALIZED;
  if (!ptr) return new_size ? RMM_ERROR_INVALID_ARGUMENT : RMM_SUCCESS;
  struct rmm_log_entry entry = rmm_api_begin(RMM_EVENT_REALLOC, new_size, stream, file, line);
  bool had_block = *ptr != NULL;
  enum hipmm_status status = hipmm_reallocate(NULL, *ptr, 0, new_size, stream, ptr);
  rmm_api_end(entry, *ptr, (*ptr != NULL) - had_block);
  return rmm_api_error(status);
}

rmmError_t rmmFree(void *ptr, hipmm_stream_t stream, const char *file, unsigned int line)
{
  if (!atomic_load(&is_initialized)) return RMM_ERROR_NOT_INITIALIZED;
  struct rmm_log_entry entry = rmm_api_begin(RMM_EVENT_FREE, 0, stream, file, line);
  enum hipmm_status status = hipmm_deallocate(NULL, ptr, 0, stream);
  rmm_api_end(entry, ptr, ptr && !status ? -1 : 0);
  return rmm_api_error(status);
}

/* ---- Facts ---- */

rmmError_t rmmGetAllocationOffset(ptrdiff_t *offset, void *ptr, hipmm_stream_t stream)
{
  struct hipmm_pointer found = {.struct_size = sizeof found};
  (void)stream;
  if (!offset) return RMM_ERROR_INVALID_ARGUMENT;
  enum hipmm_status status = hipmm_pointer_lookup(ptr, &found);
  if (status) return rmm_api_error(status);
  *offset = (char *)ptr - (char *)found.base;
  hipmm_resource_release(found.resource);
  return RMM_SUCCESS;
}

rmmError_t rmmGetInfo(size_t *freeSize, size_t *totalSize, hipmm_stream_t stream)
{
  size_t free_bytes, total_bytes;
  int64_t in_pool = 0;
  int device;
  (void)stream;
  if (!atomic_load(&is_initialized)) return RMM_ERROR_NOT_INITIALIZED;
  if (!freeSize || !totalSize) return RMM_ERROR_INVALID_ARGUMENT;
  enum hipmm_status status = hipmm_device_current(&device);
  if (!status) status = hipmm_device_memory(device, &free_bytes, &total_bytes);
  if (status) return rmm_api_error(status);
  if (hipmm_resource_query(NULL, "free_bytes", &in_pool) || in_pool < 0) in_pool = 0; /* a stack without a pool */
  free_bytes += (size_t)in_pool;
  *freeSize =
      free_bytes < total_bytes ? free_bytes : total_bytes; /* a pool of managed memory need not lie on the device */
  *totalSize = total_bytes;
  return RMM_SUCCESS;
}

/* ---- The log, for programs ---- */

rmmError_t rmmWriteLog(const char *filename)
{
  size_t bytes;
  if (!filename) return RMM_ERROR_INVALID_ARGUMENT;
  char *text = rmm_log_text(&bytes);
  if (!text) return RMM_ERROR_OUT_OF_MEMORY;
  int file = output_file_open(filename, OUTPUT_FILE_EMPTY);
  bool is_written = file >= 0 && !output_file_write(file, text, bytes, NULL);
  if (file >= 0 && close(file)) is_written = false;
  free(text);
  return is_written ? RMM_SUCCESS : RMM_ERROR_IO;
}

size_t rmmLogSize(void)
{
  size_t bytes;
  char *text = rmm_log_text(&bytes);
  free(text);
  return text ? bytes : 0;
}

rmmError_t rmmGetLog(char *buffer, size_t buffer_size)
{
  size_t bytes;
  if (!buffer) return RMM_ERROR_INVALID_ARGUMENT;
  char *text = rmm_log_text(&bytes);
  if (!text) return RMM_ERROR_OUT_OF_MEMORY;
  memcpy(buffer, text, bytes < buffer_size ? bytes : buffer_size);
  free(text);
  return RMM_SUCCESS;
}
