/* SPDX-License-Identifier: MIT */
/* share.c: the functions of hipmm/share.h. The resource that offers ops->sharing does the work. */
#include <hipmm/share.h>

#include "../base/error.h"
#include "resource_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool share_has_pool(const struct hipmm_sharing *sharing)
{
  return sharing && sharing->export_fd && sharing->export_pointer && sharing->import_pointer;
}

/* The nearest resource, from this one down, that shares a pool of the driver. */
static enum hipmm_status share_find_owner(const struct instance *top, const struct instance **owner_out)
{
  CLOSURE_EACH(one, top) {
    if (!share_has_pool(one->resource.ops->sharing)) continue;
    *owner_out = one;
    return HIPMM_OK;
  }
  return error_set(HIPMM_E_NOT_SUPPORTED,
                   "%s: neither it nor a resource below it shares memory with other processes; use async with "
                   "\"handle_type\": \"posix_fd\"",
                   top->node->name);
}

enum hipmm_status hipmm_share_export_fd(struct hipmm_resource *resource, int *fd_out)
{
  struct resource_call call;
  const struct instance *owner = NULL;
  enum hipmm_status status = resource_call_begin(resource, fd_out, "fd_out", &call);
  if (status) return status;
  status = share_find_owner(call.instance, &owner);
  if (!status)
    status =
        instance_finish_op(owner, owner->resource.ops->sharing->export_fd(owner->resource.self, fd_out), "export_fd");
  return resource_call_end(&call, status);
}

/* Refuses memory of the owner that another resource of the stack has allocated. */
static enum hipmm_status share_check_not_cut_up(const struct stack *stack, const struct instance *owner,
                                                const void *ptr)
{
  for (size_t i = 0; i < stack->graph->n_nodes; i++) {
    const struct instance *instance = &stack->instances[i];
    if (!instance->created || !dependencies_include(instance, owner)) continue;
    if (!instance->resource.ops->covers(instance->resource.self, ptr)) continue;
    return error_set(HIPMM_E_POINTER,
                     "%p is in a chunk that %s cuts up, which can only be exported as a whole; allocate what is to be "
                     "exported from %s, or from a pool with \"growth\": \"mapped\" over device "
                     "(hipmm_share_export_block())",
                     ptr, instance->node->name, owner->node->name);
  }
  return HIPMM_OK;
}

/* Refuses a block of any resource that cuts up the owner's memory, in any stack. Of other blocks, *block_out gets what `top`
 * knows, if it knows any: the owner's block can be larger. */
static enum hipmm_status share_check_exportable(const struct instance *top, const struct instance *owner,
                                                const void *ptr, struct hipmm_block *block_out)
{
  enum hipmm_status status = instance_find(top, ptr, block_out);
  if (status == HIPMM_E_NOT_SUPPORTED) status = HIPMM_OK; /* the owner can tell */
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    if (!status) status = share_check_not_cut_up(stack, owner, ptr);
  return status;
}

static int share_count_chunk(void *n_chunks, const struct hipmm_chunk *chunk)
{
  (void)chunk;
  ++*(size_t *)n_chunks;
  return 0;
}

/* The resource whose live block starts at `ptr`, which must map memory of its upstream, and the number of the block's
 * chunks. */
static enum hipmm_status share_find_mapped(const struct instance *top, const void *ptr, struct hipmm_block *block_out,
                                           const struct instance **owner_out, size_t *n_chunks_out)
{
  CLOSURE_EACH(instance, top) {
    const struct hipmm_ops *ops = instance->resource.ops;
    size_t n_chunks = 0;
    if (!instance->node->plugin->descriptor.ops->visit_chunks) continue;
    if (ops->find(instance->resource.self, ptr, block_out)) continue;
    enum hipmm_status status = instance_finish_op(
        instance, ops->visit_chunks(instance->resource.self, ptr, share_count_chunk, &n_chunks), "visit_chunks");
    if (status) return status;
    if (!n_chunks) break;
    *owner_out = instance;
    *n_chunks_out = n_chunks;
    return HIPMM_OK;
  }
  enum hipmm_status status = instance_find(top, ptr, block_out);
  if (status) return status;
  return error_set(
      HIPMM_E_NOT_SUPPORTED,
      "%s: the block at %p is not in mapped memory; use a pool with \"growth\": \"mapped\" over device, or "
      "hipmm_share_export_pointer() for a block that was allocated from async itself",
      top->node->name, ptr);
}

/* A resource that makes handles of its mapped blocks, and has the live block at `ptr`; NULL, and no error, if there is none. */
static const struct instance *share_find_handles(const struct instance *top, const void *ptr,
                                                 struct hipmm_block *block_out)
{
  const struct instance *owner = NULL;
  const struct error_record before = error_mark();
  size_t n_chunks;
  if (share_find_mapped(top, ptr, block_out, &owner, &n_chunks)) owner = NULL;
  error_return_to_mark(&before);
  return owner && owner->resource.ops->sharing && owner->resource.ops->sharing->export_pointer ? owner : NULL;
}

static enum hipmm_status share_check_named(const struct instance *owner)
{
  if (!owner->stack->graph->was_found) return HIPMM_OK;
  return error_set(HIPMM_E_NOT_SUPPORTED,
                   "%s: what other processes get needs a socket, which a graph that was only found (%s) does not "
                   "allow; name the graph, as with HIPMM_CONFIG",
                   owner->node->name, owner->stack->graph->source);
}

enum hipmm_status hipmm_share_export_pointer(struct hipmm_resource *resource, const void *ptr,
                                             struct hipmm_share_pointer *pointer_out)
{
  struct resource_call call;
  const struct instance *owner = NULL;
  struct hipmm_share_pointer pointer = {.bytes = 0};
  struct hipmm_block block;
  if (!ptr && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "ptr is NULL");
  enum hipmm_status status = resource_call_begin(resource, pointer_out, "pointer_out", &call);
  if (status) return status;
  owner = share_find_handles(call.instance, ptr, &block);
  status = owner ? share_check_named(owner) : share_find_owner(call.instance, &owner);
  if (!status) status = share_check_exportable(call.instance, owner, ptr, &block);
  if (!status)
    status = instance_finish_op(
        owner, owner->resource.ops->sharing->export_pointer(owner->resource.self, ptr, &pointer), "export_pointer");
  pointer.magic = HIPMM_SHARE_MAGIC;
  pointer.version = HIPMM_SHARE_VERSION;
  pointer.struct_size = sizeof pointer;
  if (!status) *pointer_out = pointer;
  return resource_call_end(&call, status);
}

static enum hipmm_status share_check_pointer(const struct hipmm_share_pointer *pointer)
{
  if (pointer->magic != HIPMM_SHARE_MAGIC)
    return error_set(HIPMM_E_ARGUMENT,
                     "pointer was not exported by hipmm_share_export_pointer(): it does not begin with "
                     "HIPMM_SHARE_MAGIC");
  if (pointer->version == HIPMM_SHARE_VERSION && pointer->struct_size == sizeof *pointer) return HIPMM_OK;
  return error_set(
      HIPMM_E_NOT_SUPPORTED,
      "pointer is of version %u with %u bytes, and this hipmm (%s) knows version %u with %zu bytes; use the "
      "same release in both processes",
      pointer->version, pointer->struct_size, hipmm_version(), HIPMM_SHARE_VERSION, sizeof *pointer);
}

enum hipmm_status hipmm_share_import_pointer(struct hipmm_resource *resource, const struct hipmm_share_pointer *pointer,
                                             void **ptr_out)
{
  struct resource_call call;
  const struct instance *owner = NULL;
  if (!pointer && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "pointer is NULL");
  enum hipmm_status status = resource_call_begin(resource, ptr_out, "ptr_out", &call);
  if (status) return status;
  status = share_check_pointer(pointer);
  if (call.instance->resource.ops->sharing && call.instance->resource.ops->sharing->import_pointer)
    owner = call.instance;
  if (!status && !owner) status = share_find_owner(call.instance, &owner);
  if (!status && owner->node->plugin->descriptor.flags & HIPMM_PLUGIN_UNDIVIDED) status = share_check_named(owner);
  if (!status)
    status = instance_finish_op(
        owner, owner->resource.ops->sharing->import_pointer(owner->resource.self, pointer, ptr_out), "import_pointer");
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_share_import_fd(int device, int fd, struct hipmm_resource **resource_out)
{
  char options[40];
  enum hipmm_status status = lifecycle_check_argument(resource_out, "resource_out");
  if (!status && fd < 0) status = error_set(HIPMM_E_ARGUMENT, "fd %d is no file descriptor", fd);
  if (status) return status;
  snprintf(options, sizeof options, "{\"fd\": %d}", fd);
  return hipmm_resource_create(device, "async_import", options, NULL, 0, resource_out);
}

/* ---- Mapped memory ---- */

static enum hipmm_status share_export_part(const struct hipmm_resource *upstream, const struct hipmm_chunk *chunk,
                                           struct hipmm_share_part *part_out)
{
  const struct hipmm_mapping *mapping = upstream->ops->mapping;
  bool has_export = mapping->struct_size >= offsetof(struct hipmm_mapping, export_chunk) + sizeof mapping->export_chunk;
  int fd = -1;
  if (!chunk->handle)
    return error_set(HIPMM_E_STATE, "%s: the block has no memory, since the pool is suspended; resume it first",
                     hipmm_resource_name(upstream));
  enum hipmm_status status =
      has_export && mapping->export_chunk
          ? instance_finish_op(instance_from(upstream), mapping->export_chunk(upstream->self, chunk->handle, &fd),
                               "export_chunk")
          : error_set(HIPMM_E_NOT_SUPPORTED, "%s: its chunks cannot be shared", hipmm_resource_name(upstream));
  if (!status) *part_out = (struct hipmm_share_part){.bytes = chunk->bytes, .fd = fd};
  return status;
}

/* Refuses a block that other blocks share a chunk with, which the other process would reach too. */
static enum hipmm_status share_check_alone(const struct instance *owner, const struct hipmm_block *block,
                                           size_t usable_bytes, const struct hipmm_chunk *first)
{
  if (block->ptr == first->ptr && usable_bytes >= first->bytes) return HIPMM_OK;
  return error_set(
      HIPMM_E_NOT_SUPPORTED,
      "%s: the block at %p, of %zu bytes, shares a chunk of %zu bytes with other blocks, and another process would "
      "reach them too; allocate at least %zu bytes for what is exported",
      owner->node->name, block->ptr, block->bytes, first->bytes, first->bytes);
}

struct share_export {
  const struct instance *owner; /* its upstream has the chunks */
  const struct hipmm_block *block;
  size_t usable_bytes;            /* of the block */
  struct hipmm_share_part *parts; /* NULL: nothing is exported */
  const void *start;              /* of the first chunk */
  size_t n, n_exported;           /* chunks that were visited; the first of them that have a part */
  size_t n_chunks;                /* that the block has */
  enum hipmm_status status;
};

/* Within the visit, since a handle alone says little: once the pool is suspended and resumed, another chunk may have it. The
 * block is marked once all its chunks are exported. */
static int share_export_chunk(void *closure, const struct hipmm_chunk *chunk)
{
  struct share_export *export = closure;
  if (!export->n++) {
    export->start = chunk->ptr;
    export->status = share_check_alone(export->owner, export->block, export->usable_bytes, chunk);
  }
  if (!export->parts || export->status || export->n > export->n_chunks) return 0;
  export->status = share_export_part(export->owner->upstreams[0], chunk, &export->parts[export->n_exported]);
  if (!export->status) export->n_exported++;
  return export->n_exported == export->n_chunks;
}

/* All parts, or none. The block is the caller's, so that it has the same chunks in each visit. */
static enum hipmm_status share_export_mapped(const struct instance *owner, const struct hipmm_block *block,
                                             size_t n_chunks, struct hipmm_share_block *block_out,
                                             struct hipmm_share_part *parts_out)
{
  struct hipmm_location location = {.struct_size = sizeof location, .usable_bytes = block->bytes};
  struct share_export export = {.owner = owner, .block = block, .parts = parts_out, .n_chunks = n_chunks};
  enum hipmm_status status =
      instance_finish_op(owner, owner->resource.ops->locate(owner->resource.self, block->ptr, &location), "locate");
  if (status) return status;
  export.usable_bytes = location.usable_bytes;
  status = instance_finish_op(
      owner, owner->resource.ops->visit_chunks(owner->resource.self, block->ptr, share_export_chunk, &export),
      "visit_chunks");
  if (!status) status = export.status;
  if (!status && export.n != n_chunks)
    status = error_set(HIPMM_E_POINTER, "%s: the block at %p was freed while it was exported", owner->node->name,
                       block->ptr);
  while (status && export.n_exported) close(parts_out[--export.n_exported].fd);
  if (status) return status;
  *block_out = (struct hipmm_share_block){
      .bytes = block->bytes, .offset = (uintptr_t)block->ptr - (uintptr_t) export.start, .n_parts = n_chunks};
  return HIPMM_OK;
}

enum hipmm_status hipmm_share_export_block(struct hipmm_resource *resource, const void *ptr,
                                           struct hipmm_share_block *block_out, struct hipmm_share_part *parts_out,
                                           size_t n_parts)
{
  struct resource_call call;
  struct hipmm_block block = {NULL, 0};
  const struct instance *owner = NULL;
  size_t n_chunks = 0;
  if (!ptr && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "ptr is NULL");
  enum hipmm_status status = resource_call_begin(resource, block_out, "block_out", &call);
  if (status) return status;
  status = share_find_mapped(call.instance, ptr, &block, &owner, &n_chunks);
  if (!status) status = share_check_exportable(call.instance, owner, ptr, &block);
  if (!status && parts_out && n_chunks > n_parts)
    status =
        error_set(HIPMM_E_SIZE, "the block at %p has %zu parts, and there is room for %zu", ptr, n_chunks, n_parts);
  if (!status) status = share_export_mapped(owner, &block, n_chunks, block_out, parts_out);
  return resource_call_end(&call, status);
}

/* Numbers of another process can be anything. */
static enum hipmm_status share_check_block(const struct hipmm_share_block *block, const struct hipmm_share_part *parts,
                                           size_t n_parts)
{
  uint64_t bytes = 0;
  if (block->n_parts > n_parts)
    return error_set(HIPMM_E_ARGUMENT, "the block says that it has %llu parts, and %zu were given",
                     (unsigned long long)block->n_parts, n_parts);
  for (uint64_t i = 0; i < block->n_parts; i++) {
    if (parts[i].fd < 0) return error_set(HIPMM_E_ARGUMENT, "parts[%zu] has no file descriptor", (size_t)i);
    if (!parts[i].bytes || parts[i].bytes > SIZE_MAX / 2 - bytes)
      return error_set(HIPMM_E_ARGUMENT, "parts[%zu] says that it has %llu bytes", (size_t)i,
                       (unsigned long long)parts[i].bytes);
    bytes += parts[i].bytes;
  }
  if (block->offset % HIPMM_ALIGNMENT)
    return error_set(
        HIPMM_E_ARGUMENT,
        "the block says that it starts at offset %llu, and a block starts at a multiple of %d bytes: it was "
        "not exported by hipmm_share_export_block()",
        (unsigned long long)block->offset, HIPMM_ALIGNMENT);
  if (block->bytes && block->offset < bytes && block->bytes <= bytes - block->offset) return HIPMM_OK;
  return error_set(HIPMM_E_ARGUMENT,
                   "the block says that it has %llu bytes at offset %llu of %llu: it was not exported by "
                   "hipmm_share_export_block()",
                   (unsigned long long)block->bytes, (unsigned long long)block->offset, (unsigned long long)bytes);
}

enum hipmm_status hipmm_share_import_block(struct hipmm_resource *resource, const struct hipmm_share_block *block,
                                           const struct hipmm_share_part *parts, size_t n_parts, void **ptr_out)
{
  struct resource_call call;
  if (!block && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "block is NULL");
  if (!parts && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "parts is NULL");
  enum hipmm_status status = resource_call_begin(resource, ptr_out, "ptr_out", &call);
  if (status) return status;
  const struct hipmm_sharing *sharing = call.instance->resource.ops->sharing;
  bool imports =
      sharing && sharing->struct_size > offsetof(struct hipmm_sharing, import_block) && sharing->import_block;
  status = imports ? share_check_block(block, parts, n_parts)
                   : error_set(HIPMM_E_NOT_SUPPORTED, "%s: only a resource of the type device imports mapped memory",
                               call.instance->node->name);
  if (!status)
    status = instance_finish_op(
        call.instance, sharing->import_block(call.instance->resource.self, block, parts, ptr_out), "import_block");
  return resource_call_end(&call, status);
}
