/* SPDX-License-Identifier: MIT */
/* pointer.c: from a pointer to the live block in which it lies, for applications. Asks every live resource; the youngest
 * one that has the block, or divides the memory around it, decides, since a resource is younger than all below it. */
#include <hipmm/inspect.h>

#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../runtime/hip.h"
#include "inspect.h"

#include <string.h>

struct pointer_search {
  const void *ptr;
  bool is_inside;         /* blocks that hold the pointer, not only blocks that start at it */
  struct instance *owner; /* with a reference to its stack; NULL: none */
  struct hipmm_block block;
  bool is_covered; /* a resource divides the memory around the pointer, and has no live block there */
  uint64_t number; /* of the instance that decided */
};

static bool pointer_holds(const void *start, size_t bytes, const void *ptr)
{
  return (uintptr_t)ptr - (uintptr_t)start < bytes;
}

/* ---- One resource ---- */

struct pointer_visit {
  const void *ptr;
  struct hipmm_block block;
  bool is_live, is_free;
};

static void pointer_visit_extent(void *closure, const struct hipmm_extent *extent)
{
  struct pointer_visit *visit = closure;
  if (!pointer_holds(extent->ptr, extent->bytes, visit->ptr)) return;
  if (extent->state != HIPMM_EXTENT_LIVE) {
    visit->is_free = true;
    return;
  }
  visit->is_live = true;
  visit->block = (struct hipmm_block){(void *)(uintptr_t)extent->ptr, extent->bytes};
}

/* The block that holds the pointer: shown by the resource, or in the block map of a source. */
static bool pointer_find_inside(struct instance *instance, struct pointer_search *search, struct hipmm_block *block_out,
                                bool *is_covered_out)
{
  struct pointer_visit visit = {.ptr = search->ptr};
  if (instance->resource.ops->visit(instance->resource.self, pointer_visit_extent, &visit)) return false;
  *is_covered_out = visit.is_free || instance->resource.ops->covers(instance->resource.self, search->ptr);
  if (visit.is_live) *block_out = visit.block;
  return visit.is_live || block_map_find_holding(&instance->block_map, search->ptr, block_out);
}

static bool pointer_find_start(struct instance *instance, struct pointer_search *search, struct hipmm_block *block_out,
                               bool *is_covered_out)
{
  const struct hipmm_ops *ops = instance->resource.ops;
  if (!instance->node->plugin->descriptor.ops->find) return false;
  if (!ops->find(instance->resource.self, search->ptr, block_out)) return true;
  if (ops->spans && ops->spans->find(instance->resource.self, search->ptr, block_out)) return true; /* anywhere in it */
  *is_covered_out = ops->covers(instance->resource.self, search->ptr);
  return false;
}

static void pointer_ask(struct pointer_search *search, struct instance *instance)
{
  struct hipmm_block block = {NULL, 0};
  bool is_covered = false, decided = search->owner || search->is_covered;
  if (decided && instance->number < search->number) return;
  bool is_found = (search->is_inside ? pointer_find_inside : pointer_find_start)(instance, search, &block, &is_covered);
  if (!is_found && !is_covered) return;
  if (search->owner) stack_unpin(search->owner->stack);
  search->owner = is_found && stack_pin(instance->stack) ? instance : NULL;
  search->block = block;
  search->is_covered = !is_found;
  search->number = instance->number;
}

static void pointer_ask_all(struct pointer_search *search)
{
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    STACK_EACH(instance, stack) pointer_ask(search, instance);
}

/* A pointer into a block leads to its start, and the start to the resource. */
static void pointer_find(struct pointer_search *search)
{
  pointer_ask_all(search);
  search->is_inside = !search->owner;
  if (search->is_inside) pointer_ask_all(search);
  if (!search->is_inside || !search->owner) return;
  stack_unpin(search->owner->stack);
  *search = (struct pointer_search){.ptr = search->block.ptr};
  pointer_ask_all(search);
}

/* ---- What is known of the block ---- */

static int pointer_take_first_chunk(void *closure, const struct hipmm_chunk *chunk)
{
  struct hipmm_block *base = closure;
  if (!base->ptr) *base = (struct hipmm_block){(void *)(uintptr_t)chunk->ptr, chunk->bytes};
  return 0;
}

/* The chunk that is mapped there; else the block that a source below has from the runtime; else what the runtime says,
 * for memory that the program brought along. */
static struct hipmm_block pointer_find_base(const struct instance *owner, const struct hipmm_block *block,
                                            uint32_t *flags_out)
{
  const struct hipmm_hip *hip = hip_table();
  struct hipmm_block base = {NULL, 0};
  CLOSURE_EACH(below, owner)
    if (!base.ptr && below->node->plugin->descriptor.ops->visit_chunks)
      below->resource.ops->visit_chunks(below->resource.self, block->ptr, pointer_take_first_chunk, &base);
  if (base.ptr) *flags_out |= HIPMM_POINTER_MAPPED;
  CLOSURE_EACH(below, owner)
    if (!base.ptr) block_map_find_holding(&below->block_map, block->ptr, &base);
  if (!base.ptr && hip->MemGetAddressRange && hip->MemGetAddressRange(&base.ptr, &base.bytes, block->ptr)) {
    hip->GetLastError();
    base.ptr = NULL;
  }
  return base.ptr ? base : *block;
}

/* From the owner down: it may be an adaptor that passes blocks on. */
static struct hipmm_location pointer_locate(const struct instance *owner, const struct hipmm_block *block)
{
  CLOSURE_EACH(below, owner) {
    struct hipmm_location location = {.struct_size = sizeof location, .usable_bytes = block->bytes};
    if (!below->node->plugin->descriptor.ops->locate) continue;
    if (!below->resource.ops->locate(below->resource.self, block->ptr, &location)) return location;
  }
  return (struct hipmm_location){.usable_bytes = block->bytes};
}

static void pointer_fill(struct hipmm_pointer *pointer, struct instance *owner, const struct hipmm_block *block)
{
  struct hipmm_location location = pointer_locate(owner, block);
  struct hipmm_block base = pointer_find_base(owner, block, &pointer->flags);
  pointer->resource = &owner->resource;
  pointer->device = owner->stack->device;
  pointer->ptr = block->ptr;
  pointer->bytes = block->bytes;
  pointer->usable_bytes = location.usable_bytes;
  pointer->base = base.ptr;
  pointer->base_bytes = base.bytes;
  pointer->offset = (size_t)((char *)block->ptr - (char *)base.ptr);
  if (!location.has_stream) return;
  pointer->flags |= HIPMM_POINTER_STREAM_KNOWN;
  pointer->stream = location.stream;
}

static enum hipmm_status pointer_refuse(const struct pointer_search *search)
{
  return error_set(HIPMM_E_POINTER,
                   search->is_covered ? "%p lies in free memory of a resource: the block there was freed before"
                                      : "%p is in no live block of hipmm: it is foreign, or was freed before",
                   search->ptr);
}

enum hipmm_status hipmm_pointer_lookup(const void *ptr, struct hipmm_pointer *pointer_out)
{
  struct pointer_search search = {.ptr = ptr};
  struct hipmm_pointer pointer = {.struct_size = sizeof pointer};
  enum hipmm_status status = lifecycle_check_use(ptr, "ptr");
  if (!status) status = lifecycle_check_use(pointer_out, "pointer_out");
  if (status) return status;
  if (pointer_out->struct_size < offsetof(struct hipmm_pointer, device))
    return error_set(HIPMM_E_ARGUMENT, "struct_size of the pointer is %zu; set it to sizeof(struct hipmm_pointer), %zu",
                     pointer_out->struct_size, sizeof pointer);
  const struct error_record before = error_mark();
  pointer_find(&search);
  if (!search.owner) return pointer_refuse(&search);
  pointer_fill(&pointer, search.owner, &search.block);
  hipmm_resource_retain(pointer.resource);
  stack_unpin(search.owner->stack);
  size_t bytes = pointer_out->struct_size < sizeof pointer ? pointer_out->struct_size : sizeof pointer;
  pointer.struct_size = pointer_out->struct_size;
  memcpy(pointer_out, &pointer, bytes);
  error_return_to_mark(&before);
  return HIPMM_OK;
}
