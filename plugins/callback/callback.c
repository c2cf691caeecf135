/* SPDX-License-Identifier: MIT */
/* callback.c: a source that calls functions of the program for memory (hipmm_allocator_register). The resource's device
 * is current while they run. Their results are checked before use, every block has a record, and a call from them back
 * into the same resource is refused, since it could recurse without end.
 *
 * A block that overlaps a live one is reported and not freed: to free it could free the live one. */
#include "../../core/base/lock_order.h"
#include "../../core/base/text.h"
#include "../common/program_calls.h"
#include "../common/refusals.h"
#include "../common/source.h"
#include "ranges.h"

struct callback_options {
  const struct hipmm_allocator *allocator;
};

struct callback {
  const struct hipmm_services *services;
  const struct hipmm_allocator *allocator;
  struct ranges ranges;
};

/* ---- Calling the program ---- */

/* A call of this thread into the program. */
struct callback_call {
  struct program_call call;
  int previous_device;
};

static enum hipmm_status callback_enter(const struct callback *self, struct callback_call *call)
{
  if (program_calls_forbid_reentry(self))
    return self->services->refuse(
        self->services, HIPMM_E_STATE,
        "called by its own allocator: the program's functions must not allocate from this resource", 0, 0, 0);
  program_calls_enter(&call->call, self);
  call->previous_device = self->services->enter_device(self->services);
  self->services->enter_program(self->services);
  return HIPMM_OK;
}

static void callback_leave(const struct callback *self, const struct callback_call *call)
{
  program_calls_leave(&call->call);
  self->services->leave_program(self->services);
  self->services->leave_device(self->services, call->previous_device);
}

static void callback_free_block(const struct callback *self, const struct range *block, hipmm_stream_t stream)
{
  lock_order_enter_program();
  self->allocator->deallocate(self->allocator->arg, (void *)block->by_address.major, block->by_address.minor,
                              block->alignment, stream);
  lock_order_leave_program();
}

/* ---- Checking what the program returned ---- */

/* Statuses are numbers from -1 to HIPMM_E_INTERNAL. */
static enum hipmm_status callback_explain(const struct callback *self, enum hipmm_status status, size_t bytes)
{
  if (status < 0 && status >= HIPMM_E_INTERNAL)
    return self->services->refuse(self->services, status, "the program's allocator refused {0:bytes} (status -{1})",
                                  bytes, (uint64_t) - (int64_t)status, 0);
  return self->services->refuse(
      self->services, HIPMM_E_ARGUMENT,
      "the program's allocator refused {0:bytes} with {1:hex}, which is not a status of hipmm", bytes,
      (uint64_t)(int64_t)status, 0);
}

static enum hipmm_status callback_add(struct callback *self, const struct range *block)
{
  const struct hipmm_services *services = self->services;
  uintptr_t start = block->by_address.major, bytes = block->by_address.minor;
  struct hipmm_block other = {NULL, 0};
  switch (ranges_add(&self->ranges, block, &other)) {
  case RANGES_ADDED: services->count_held(services, (int64_t)bytes); return HIPMM_OK;
  case RANGES_OVERLAP:
    return services->refuse(services, HIPMM_E_ARGUMENT,
                            "the program's allocator returned {0:hex} for {1:bytes}, which overlaps memory in use at "
                            "{2:hex}",
                            start, bytes, (uintptr_t)other.ptr);
  default:
    callback_free_block(self, block, block->stream);
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                            "no host memory left for the record of a block of {0:bytes}", bytes, 0, 0);
  }
}

static enum hipmm_status callback_accept(struct callback *self, const struct range *block)
{
  const struct hipmm_services *services = self->services;
  uintptr_t start = block->by_address.major, bytes = block->by_address.minor;
  if (!start)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                            "the program's allocator returned NULL and no error for {0:bytes}", bytes, 0, 0);
  if (start > UINTPTR_MAX - bytes)
    return services->refuse(services, HIPMM_E_ARGUMENT,
                            "the program's allocator returned {0:hex} for {1:bytes}, beyond the end of all addresses",
                            start, bytes, 0);
  enum hipmm_status status = callback_add(self, block);
  if (status || start % block->alignment == 0) return status;
  struct range noted;
  ranges_remove(&self->ranges, (const void *)start, bytes, &noted);
  services->count_held(services, -(int64_t)bytes);
  callback_free_block(self, block, block->stream);
  return services->refuse(services, HIPMM_E_ARGUMENT,
                          "the program's allocator returned {0:hex} for {1:bytes}, which is not aligned to {2:bytes}",
                          start, bytes, block->alignment);
}

/* ---- Ops ---- */

static enum hipmm_status callback_allocate(void *self_, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  struct callback *self = self_;
  struct callback_call call;
  void *ptr = NULL;
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  enum hipmm_status status = source_check(self->services, bytes, HIPMM_ALIGNMENT);
  if (!status) status = callback_enter(self, &call);
  if (status) return status;
  lock_order_enter_program();
  status = self->allocator->allocate(self->allocator->arg, bytes, alignment, stream, &ptr);
  lock_order_leave_program();
  struct range block = {{.major = (uintptr_t)ptr, .minor = bytes}, NULL, alignment, stream};
  status = status ? callback_explain(self, status, bytes) : callback_accept(self, &block);
  callback_leave(self, &call);
  if (!status) *ptr_out = ptr;
  return status;
}

/* Removes the record before the program frees the block, since another thread may get the same address at once. */
static enum hipmm_status callback_deallocate(void *self_, void *ptr, size_t bytes, size_t alignment,
                                             hipmm_stream_t stream)
{
  struct callback *self = self_;
  struct callback_call call;
  struct range block = {.alignment = 0};
  (void)alignment; /* as allocated */
  if (!ptr) return HIPMM_OK;
  enum hipmm_status status = callback_enter(self, &call);
  if (status) return status;
  status = ranges_remove(&self->ranges, ptr, bytes, &block);
  if (!status) self->services->count_held(self->services, -(int64_t)block.by_address.minor);
  if (!status) callback_free_block(self, &block, stream);
  callback_leave(self, &call);
  if (status == HIPMM_E_SIZE) return refuse_size(self->services, ptr, bytes, block.by_address.minor);
  return status ? refuse_pointer(self->services, ptr) : HIPMM_OK;
}

static enum hipmm_status callback_find(void *self_, const void *ptr, struct hipmm_block *block_out)
{
  struct callback *self = self_;
  struct range block;
  if (!ranges_find(&self->ranges, ptr, &block)) return refuse_pointer(self->services, ptr);
  *block_out = (struct hipmm_block){(void *)block.by_address.major, block.by_address.minor};
  return HIPMM_OK;
}

static enum hipmm_status callback_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                                        void *closure)
{
  ranges_visit(&((struct callback *)self)->ranges, visitor, closure);
  return HIPMM_OK;
}

enum callback_value { LIVE_BYTES, LIVE_COUNT, N_VALUES };

static const struct hipmm_feature callback_values[N_VALUES] = {
    [LIVE_BYTES] = {"live_bytes", "bytes", "Memory allocated by the program's functions, as requested"},
    [LIVE_COUNT] = {"live_count", "blocks", "Blocks allocated by the program's functions"},
};

static enum hipmm_status callback_query(void *self, size_t index, int64_t *value_out)
{
  struct ranges *ranges = &((struct callback *)self)->ranges;
  pthread_mutex_lock(&ranges->lock);
  *value_out = (int64_t)(index == LIVE_BYTES ? ranges->bytes : ranges->count);
  pthread_mutex_unlock(&ranges->lock);
  return HIPMM_OK;
}

/* ---- Life ---- */

static enum hipmm_status callback_create(const struct hipmm_services *services, const void *options,
                                         struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct callback_options *wanted = options;
  (void)upstreams, (void)n_upstreams; /* it has none */
  struct callback *self = services->host_allocate(services, sizeof *self);
  if (!self) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  self->services = services;
  self->allocator = wanted->allocator;
  ranges_open(&self->ranges, services);
  *self_out = self;
  return HIPMM_OK;
}

static void callback_destroy(void *self_)
{
  struct callback *self = self_;
  const struct hipmm_services *services = self->services;
  struct range block;
  if (self->ranges.count)
    services->log(services, HIPMM_LOG_WARNING, "destroyed with %llu block%s (%llu byte%s) still allocated",
                  (unsigned long long)self->ranges.count, text_plural(self->ranges.count),
                  (unsigned long long)self->ranges.bytes, text_plural(self->ranges.bytes));
  device_wait_at_end(services);
  while (ranges_remove_first(&self->ranges, &block)) {
    services->count_held(services, -(int64_t)block.by_address.minor);
    callback_free_block(self, &block, NULL);
  }
  ranges_close(&self->ranges);
  services->host_free(services, self, sizeof *self);
}

static const struct hipmm_option callback_option_table[] = {
    {.name = "allocator",
     .type = HIPMM_OPTION_OBJECT,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct callback_options, allocator),
     .unit = "allocator",
     .doc = "Name of the functions that the program registered with hipmm_allocator_register(); they must not allocate "
            "from this resource or from a resource above it"},
};

static const struct hipmm_ops callback_ops = {
    .struct_size = sizeof callback_ops,
    .allocate = callback_allocate,
    .deallocate = callback_deallocate,
    .query = callback_query,
    .find = callback_find,
    .visit = callback_visit,
};

HIPMM_EXPORT extern const struct hipmm_plugin callback_LTX_hipmm_plugin;

const struct hipmm_plugin callback_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "callback",
    .version = "1.0",
    .doc = "Memory from functions of the program",
    .role = HIPMM_ROLE_SOURCE,
    .options = callback_option_table,
    .n_options = sizeof callback_option_table / sizeof *callback_option_table,
    .options_bytes = sizeof(struct callback_options),
    .values = callback_values,
    .n_values = N_VALUES,
    .ops = &callback_ops,
    .create = callback_create,
    .destroy = callback_destroy,
};
