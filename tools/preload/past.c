/* SPDX-License-Identifier: MIT */
/* past.c: physical memory that the program creates past hipmm, with cuMemCreate() and hipMemCreate(); see operations.h. It is
 * counted, and held to the graph's "limit_physical" (core/stack/physical.h). Memory lives as long as one of its handles or
 * mappings: the program may release the handle while the memory is mapped, and retain a handle of mapped memory. Imported
 * memory is counted where it was created; memory of the host is not counted. */
#include "operations.h"

#include "../../core/base/hip_layout.h"
#include "../../core/base/key_tree.h"
#include "../../core/base/share_format.h"
#include "../../core/base/units.h"
#include "../../core/runtime/hip.h"
#include "../../core/stack/physical.h"
#include "blocks.h"
#include "contexts.h"
#include "devices.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "shortage.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct past_memory {
  struct key_tree_node by_handle; /* first; major: the handle. In the tree while it has one */
  int device;
  size_t bytes;
  unsigned handles, mappings, calls; /* calls: that release a handle now */
};

struct past_mapping {
  struct key_tree_node by_address; /* first; the range */
  struct past_memory *memory;
};

static struct key_tree_node *memories, *mappings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- The tables, under the lock ---- */

static struct past_memory *past_find(uint64_t handle)
{
  return (struct past_memory *)key_tree_at(memories, (uintptr_t)handle);
}

static void past_end(struct past_memory *memory)
{
  if (memory->handles || memory->mappings || memory->calls) return;
  physical_remove_past(memory->device, memory->bytes);
  free(memory);
}

static void past_add_handle(struct past_memory *memory, uint64_t handle)
{
  if (memory->handles++) return;
  struct past_memory *older = past_find(handle);
  if (older) { /* its end was not seen: a handle stands for one memory */
    key_tree_remove(&memories, &older->by_handle);
    older->handles = 0;
    past_end(older);
  }
  memory->by_handle.major = (uintptr_t)handle;
  key_tree_insert(&memories, &memory->by_handle);
}

/* Takes mappings that share a byte with the range out of the table: a list, linked through `left`. */
static struct key_tree_node *past_take_mappings(void *start, size_t bytes)
{
  struct key_tree_node *taken = NULL, *one;
  while ((one = key_tree_overlapping(mappings, (uintptr_t)start, bytes))) {
    key_tree_remove(&mappings, one);
    one->left = taken;
    taken = one;
  }
  return taken;
}

/* The mappings are over, or go on. */
static void past_end_mappings(struct key_tree_node *taken, bool is_over)
{
  while (taken) {
    struct past_mapping *mapping = (struct past_mapping *)taken;
    taken = taken->left;
    if (!is_over) {
      key_tree_insert(&mappings, &mapping->by_address);
      continue;
    }
    mapping->memory->mappings--;
    past_end(mapping->memory);
    free(mapping);
  }
}

/* ---- Creating ---- */

/* Whether the call is counted: of the program itself, where hipmm works. A driver that the program has not initialised refuses
 * the call; hipmm would initialise it. */
static bool past_enter(enum hook hook)
{
  int count = 0;
  bool is_outermost = init_enter(), is_driver = hook_family(hook) == FAMILY_DRIVER;
  next_function counting = is_driver ? next_find(HOOK_cuDeviceGetCount) : NULL;
  if (!is_outermost || (is_driver && (!counting || ((int (*)(int *))counting)(&count)))) return false;
  return init_ready(hook_family(hook));
}

/* -1: memory of the host. */
static int past_device(enum hook hook, const void *properties)
{
  enum { LOCATION_DEVICE = 1 };
  const union hip_layout_prop *prop = properties;
  int version = HIP_LAYOUT_5_3;
  if (!properties) return -1;
  if (hook_family(hook) == FAMILY_HIP && hip_table()->RuntimeGetVersion(&version)) version = HIP_LAYOUT_5_3;
  const struct hip_layout_location *location =
      version < HIP_LAYOUT_5_3 ? &prop->up_to_5_2.location : &prop->from_5_3.location;
  bool is_known = location->type == LOCATION_DEVICE && location->id >= 0 && location->id < hip_device_count() &&
                  location->id < DEVICES_MOST;
  return is_known ? location->id : -1;
}

/* Without host memory the memory is not counted. */
static void past_record(int device, size_t bytes, uint64_t handle)
{
  struct past_memory *memory = calloc(1, sizeof *memory);
  if (!memory) {
    physical_claim(device, -1);
    return;
  }
  *memory = (struct past_memory){.device = device, .bytes = bytes};
  physical_add_past(device, bytes);
  pthread_mutex_lock(&lock);
  past_add_handle(memory, handle);
  pthread_mutex_unlock(&lock);
}

typedef int create_function(uint64_t *handle, size_t bytes, const void *properties, uint64_t flags);

static int past_try_create(enum hook hook, uint64_t *handle, size_t bytes, const void *properties, uint64_t flags,
                           int device, bool *is_refused_out)
{
  *is_refused_out = !physical_claim(device, bytes <= INT64_MAX ? (int64_t)bytes : INT64_MAX);
  if (*is_refused_out) return HIPMM_HIP_ERROR_OUT_OF_MEMORY;
  int code = ((create_function *)next_function_of(hook))(handle, bytes, properties, flags);
  if (code) physical_claim(device, -1);
  return code;
}

int past_create(enum hook hook, uint64_t *handle, size_t bytes, const void *properties, uint64_t flags)
{
  char asked[40], limit[40], held[40];
  int code, device = past_enter(hook) ? past_device(hook, properties) : -1;
  bool is_outermost = reentry_depth() == 1, is_refused = false;
  if (device >= 0 && physical_limit_is_open(device)) {
    struct context_switch before = contexts_enter(hook_family(hook), device);
    physical_limit(device);
    contexts_leave(before);
  }
  SHORTAGE_REPEAT(hook, is_outermost, code,
                  past_try_create(hook, handle, bytes, properties, flags, device, &is_refused));
  if (!code && device >= 0) past_record(device, bytes, *handle);
  if (is_refused)
    failure_refuse(hook, code,
                   "\"limit_physical\" lets this process hold %s of device %d; it holds %s, and %s more are wanted",
                   units_format_bytes(physical_limit(device), limit, sizeof limit), device,
                   units_format_bytes(physical_held_bytes(device), held, sizeof held),
                   units_format_bytes(bytes, asked, sizeof asked));
  return reentry_finish(hook, is_refused ? OUTCOME_FAILED : OUTCOME_PASSED, code);
}

/* ---- Handles ---- */

/* The handle means nothing from the call on: the driver may give another thread the same one for other memory. */
static struct past_memory *past_begin_release(uint64_t handle)
{
  pthread_mutex_lock(&lock);
  struct past_memory *memory = past_find(handle);
  if (memory) memory->calls++;
  if (memory && !--memory->handles) key_tree_remove(&memories, &memory->by_handle);
  pthread_mutex_unlock(&lock);
  return memory;
}

static void past_finish_release(struct past_memory *memory, uint64_t handle, int code)
{
  if (!memory) return;
  pthread_mutex_lock(&lock);
  memory->calls--;
  if (code) past_add_handle(memory, handle);
  past_end(memory);
  pthread_mutex_unlock(&lock);
}

int past_release(enum hook hook, uint64_t handle)
{
  bool is_outermost = reentry_enter();
  struct past_memory *memory = is_outermost && !init_is_forked() ? past_begin_release(handle) : NULL;
  int code = ((int (*)(uint64_t))next_function_of(hook))(handle);
  past_finish_release(memory, handle, code);
  return reentry_finish(hook, OUTCOME_PASSED, code);
}

/* Whether other processes can have the handle, and would find other blocks behind it: what a program learns of the block's
 * address and size is not true of the chunk that it shares. */
static bool past_shows_other_blocks(uint64_t handle, const struct block *block)
{
  int fd;
  const struct hipmm_hip *hip = hip_table();
  if (block_bytes(block) >= SHARE_FORMAT_LEAST_BYTES || !hip->MemExport) return false;
  if (hip->MemExport(&fd, (hipmm_hip_chunk_t)(uintptr_t)handle)) {
    hip->GetLastError();
    return false;
  }
  close(fd);
  return true;
}

int past_retain(enum hook hook, uint64_t *handle, void *ptr)
{
  struct block block;
  bool is_outermost = reentry_enter();
  int code = next_two_pointers(hook, handle, ptr);
  bool is_ours = is_outermost && !code && ptr && init_was_ready() && !init_is_forked() && blocks_find(ptr, &block);
  if (is_ours && past_shows_other_blocks(*handle, &block)) {
    hip_table()->MemRelease((hipmm_hip_chunk_t)(uintptr_t)*handle);
    code = failure_refuse(hook, HIPMM_HIP_ERROR_INVALID_VALUE,
                          "%p lies in a chunk with other blocks, and another process would reach them too; allocate at "
                          "least 1 MiB for what is shared",
                          ptr);
  }
  if (is_outermost && !code && !init_is_forked()) {
    pthread_mutex_lock(&lock);
    const struct past_mapping *mapping = (struct past_mapping *)key_tree_holding(mappings, (uintptr_t)ptr);
    if (mapping) past_add_handle(mapping->memory, *handle);
    pthread_mutex_unlock(&lock);
  }
  reentry_leave();
  return code;
}

/* ---- Mappings ---- */

typedef int map_function(void *ptr, size_t bytes, size_t offset, uint64_t handle, uint64_t flags);

int past_map(enum hook hook, void *ptr, size_t bytes, size_t offset, uint64_t handle, uint64_t flags)
{
  int code;
  bool is_outermost = reentry_enter();
  SHORTAGE_REPEAT(hook, is_outermost, code,
                  ((map_function *)next_function_of(hook))(ptr, bytes, offset, handle, flags));
  struct past_mapping *mapping = is_outermost && !code && !init_is_forked() ? calloc(1, sizeof *mapping) : NULL;
  if (mapping) {
    pthread_mutex_lock(&lock);
    mapping->memory = past_find(handle);
    mapping->by_address.major = (uintptr_t)ptr;
    mapping->by_address.minor = bytes;
    past_end_mappings(past_take_mappings(ptr, bytes), true); /* of which the end was not seen */
    if (mapping->memory) mapping->memory->mappings++;
    if (mapping->memory)
      key_tree_insert(&mappings, &mapping->by_address);
    else
      free(mapping);
    pthread_mutex_unlock(&lock);
  }
  reentry_leave();
  return code;
}

int past_unmap(enum hook hook, void *ptr, size_t bytes)
{
  bool is_outermost = reentry_enter(), is_counted = is_outermost && !init_is_forked();
  struct key_tree_node *taken = NULL;
  if (is_counted) {
    pthread_mutex_lock(&lock);
    taken = past_take_mappings(ptr, bytes);
    pthread_mutex_unlock(&lock);
  }
  int code = ((int (*)(void *, size_t))next_function_of(hook))(ptr, bytes);
  if (taken) {
    pthread_mutex_lock(&lock);
    past_end_mappings(taken, !code);
    pthread_mutex_unlock(&lock);
  }
  reentry_leave();
  return code;
}
