/* SPDX-License-Identifier: MIT */
/* instance_services.c: the functions of struct hipmm_services that only resources have. A function finds its instance from
 * the address of the table, so a plugin needs no handle of the core. Called by plugins on the allocation path; knows the
 * instances below, never how stacks are built. */
#include "../base/error.h"
#include "../base/peak.h"
#include "../plugin/plugin.h"
#include "../runtime/hip.h"
#include "attempt.h"
#include "physical.h"
#include "stack.h"

static const char not_here[] = "{0:hex} is not allocated here: it is foreign, or was freed before";

static enum hipmm_status instance_services_explain(const struct hipmm_services *services, enum hipmm_status status,
                                                   const char *text, uint64_t first, uint64_t second, uint64_t third,
                                                   uint64_t fourth)
{
  return error_explain(status, services->name, text, (const uint64_t[]){first, second, third, fourth});
}

static enum hipmm_status instance_services_refuse_hip(const struct hipmm_services *services, const char *call, int code,
                                                      size_t bytes)
{
  enum hipmm_status status = hip_refuse(services->name, call, code, bytes);
  if (status == HIPMM_E_OUT_OF_MEMORY) attempt_note_oom(instance_of_services(services), bytes);
  return status;
}

static enum hipmm_status instance_services_check_wait(const struct hipmm_services *services)
{
  return attempt_check_wait(instance_of_services(services));
}

static int instance_services_enter_device(const struct hipmm_services *services)
{
  return hip_enter_device(services->device);
}

static void instance_services_leave_device(const struct hipmm_services *services, int previous)
{
  hip_leave_device(services->device, previous);
}

static void instance_services_count_held(const struct hipmm_services *services, int64_t bytes)
{
  struct instance *instance = instance_of_services(services);
  physical_count(instance, bytes);
  peak_add(&instance->held_bytes, &instance->peak_held_bytes, bytes);
  int64_t now = peak_add(&instance->stack->held_bytes, &instance->stack->peak_held_bytes, bytes);
  held_watch_notify(instance, bytes, now);
}

/* A block that was tracked, or with negative bytes is no longer. Where the driver's own pool is counted, its blocks are
 * not what the stack holds. */
static void instance_services_count_block(const struct hipmm_services *services, const void *ptr, int64_t bytes)
{
  instance_services_count_held(services, bytes);
  if (!(instance_of_services(services)->node->plugin->descriptor.flags & HIPMM_PLUGIN_RECOUNTS))
    held_watch_place(services, ptr, bytes);
}

static enum hipmm_status instance_services_track(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  if (!block_map_insert(&instance_of_services(services)->block_map, ptr, bytes))
    return error_refuse(HIPMM_E_OUT_OF_MEMORY, services->name, "no host memory left to record a block of {0:bytes}",
                        bytes, 0, 0);
  instance_services_count_block(services, ptr, (int64_t)bytes);
  return HIPMM_OK;
}

static enum hipmm_status instance_services_untrack(const struct hipmm_services *services, void *ptr, size_t bytes,
                                                   size_t *bytes_out)
{
  struct hipmm_block block;
  enum hipmm_status status = block_map_remove(&instance_of_services(services)->block_map, ptr, bytes, &block);
  if (status == HIPMM_E_POINTER) return error_refuse(status, services->name, not_here, (uintptr_t)ptr, 0, 0);
  if (status == HIPMM_E_SIZE)
    return error_refuse(status, services->name, "{0:hex} was allocated with {1} bytes and cannot be freed with {2}",
                        (uintptr_t)ptr, block.bytes, bytes);
  instance_services_count_block(services, block.ptr, -(int64_t)block.bytes);
  *bytes_out = block.bytes;
  return HIPMM_OK;
}

static enum hipmm_status instance_services_lookup(const struct hipmm_services *services, const void *ptr,
                                                  struct hipmm_block *block_out)
{
  if (block_map_find(&instance_of_services(services)->block_map, ptr, block_out)) return HIPMM_OK;
  return error_refuse(HIPMM_E_POINTER, services->name, not_here, (uintptr_t)ptr, 0, 0);
}

static enum hipmm_status instance_services_untrack_any(const struct hipmm_services *services,
                                                       struct hipmm_block *block_out)
{
  if (!block_map_remove_any(&instance_of_services(services)->block_map, block_out)) return HIPMM_E_POINTER;
  instance_services_count_block(services, block_out->ptr, -(int64_t)block_out->bytes);
  return HIPMM_OK;
}

static enum hipmm_status instance_services_found(const struct hipmm_services *services, enum hipmm_status status,
                                                 const void *ptr)
{
  if (status != HIPMM_E_NOT_SUPPORTED) return status;
  return error_refuse(status, services->name, "no resource below knows the size of {0:hex}; free it with its size",
                      (uintptr_t)ptr, 0, 0);
}

static enum hipmm_status instance_services_find_below(const struct hipmm_services *services, const void *ptr,
                                                      struct hipmm_block *block_out)
{
  return instance_services_found(services, instance_find_below(instance_of_services(services), ptr, block_out), ptr);
}

static enum hipmm_status instance_services_find_in(const struct hipmm_services *services,
                                                   const struct hipmm_resource *resource, const void *ptr,
                                                   struct hipmm_block *block_out)
{
  return instance_services_found(services, instance_find(instance_from(resource), ptr, block_out), ptr);
}

void instance_services_fill(struct instance *instance)
{
  struct hipmm_services services = services_plain(instance->node->name);
  services.device = instance->stack->device;
  services.hip = hip_table();
  services.refuse_hip = instance_services_refuse_hip;
  services.enter_device = instance_services_enter_device;
  services.leave_device = instance_services_leave_device;
  services.track = instance_services_track;
  services.untrack = instance_services_untrack;
  services.lookup = instance_services_lookup;
  services.untrack_any = instance_services_untrack_any;
  services.count_held = instance_services_count_held;
  services.find_below = instance_services_find_below;
  services.find_in = instance_services_find_in;
  services.may_cut_up = instance_may_cut_up;
  services.is_kept_below = instance_is_kept_below;
  services.explain = instance_services_explain;
  services.copies_are_ordered = instance->stack->user != STACK_FOR_ANY;
  services.devices_are_announced = instance->stack->user == STACK_FOR_PYTORCH_WITH_INIT;
  services.watch_held = held_watch_add;
  services.unwatch_held = held_watch_remove;
  services.reclaim_level = attempt_reclaim_level;
  services.enter_program = attempt_enter_program;
  services.leave_program = attempt_leave_program;
  services.ask_program = attempt_ask_program;
  services.check_wait = instance_services_check_wait;
  services.place = held_watch_place;
  services.visit_places = held_watch_visit;
  instance->services = services;
}
