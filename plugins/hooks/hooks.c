/* SPDX-License-Identifier: MIT */
/* hooks.c: an adaptor that tells a function of the program (hipmm_hooks_register) of allocations, frees, failures for
 * want of memory, and of what the sources below take from the runtime. It keeps no record and has no lock. */
#include "../../core/base/lock_order.h"
#include "../common/descriptor.h"

struct hooks_options {
  const struct hipmm_hooks *hooks;
};

struct hooks {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  const struct hipmm_hooks *hooks;
  uint64_t kinds; /* bits of the kinds that the program wants */
};

static void hooks_notify(const struct hooks *self, struct hipmm_event event)
{
  if (!(self->kinds >> event.kind & 1)) return;
  event.struct_size = sizeof event;
  event.device = self->services->device;
  if (!event.resource) event.resource = self->services->name;
  lock_order_enter_program();
  self->hooks->callback(self->hooks->arg, &event);
  lock_order_leave_program();
}

/* ---- Ops ---- */

static enum hipmm_status hooks_allocate(void *self_, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                        void **ptr_out)
{
  const struct hooks *self = self_;
  enum hipmm_status status = hipmm_upstream_allocate(self->upstream, bytes, alignment, stream, ptr_out);
  if (!status)
    hooks_notify(
        self, (struct hipmm_event){.kind = HIPMM_EVENT_ALLOCATED, .ptr = *ptr_out, .bytes = bytes, .stream = stream});
  if (hipmm_is_out_of_memory(status) && !hipmm_is_tried_again(self->services, status))
    hooks_notify(self, (struct hipmm_event){.kind = HIPMM_EVENT_OUT_OF_MEMORY, .bytes = bytes, .stream = stream});
  return status;
}

/* The size for the event; 0 if no resource below knows. */
static size_t hooks_find_size(const struct hooks *self, const void *ptr)
{
  struct hipmm_block block = {NULL, 0};
  return self->services->find_below(self->services, ptr, &block) ? 0 : block.bytes;
}

static enum hipmm_status hooks_deallocate(void *self_, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  const struct hooks *self = self_;
  struct hipmm_event event = {.kind = HIPMM_EVENT_FREED, .ptr = ptr, .bytes = bytes, .stream = stream};
  if (!ptr) return hipmm_upstream_deallocate(self->upstream, ptr, bytes, alignment, stream);
  if (!bytes) event.bytes = hooks_find_size(self, ptr);
  hooks_notify(self, event);
  enum hipmm_status status = hipmm_upstream_deallocate(self->upstream, ptr, bytes, alignment, stream);
  event.kind = HIPMM_EVENT_FREE_REFUSED;
  if (status) hooks_notify(self, event);
  return status;
}

/* ---- Life ---- */

static void hooks_notify_of_source(void *closure, const char *source, int64_t bytes, int64_t held_bytes)
{
  if (!bytes) return; /* what is held at first */
  hooks_notify(closure, (struct hipmm_event){.kind = bytes > 0 ? HIPMM_EVENT_GREW : HIPMM_EVENT_SHRANK,
                                             .resource = source,
                                             .bytes = (size_t)(bytes > 0 ? bytes : -bytes),
                                             .held_bytes = (size_t)held_bytes});
}

static enum hipmm_status hooks_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const uint64_t of_sources = 1u << HIPMM_EVENT_GREW | 1u << HIPMM_EVENT_SHRANK;
  const struct hooks_options *wanted = options;
  (void)n_upstreams; /* one, as the descriptor says */
  struct hooks *self = services->host_allocate(services, sizeof *self);
  if (!self) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  *self =
      (struct hooks){services, upstreams[0], wanted->hooks, wanted->hooks->kinds ? wanted->hooks->kinds : UINT64_MAX};
  enum hipmm_status status =
      self->kinds & of_sources ? services->watch_held(services, hooks_notify_of_source, NULL, self) : HIPMM_OK;
  if (status)
    services->host_free(services, self, sizeof *self);
  else
    *self_out = self;
  return status;
}

static void hooks_destroy(void *self_)
{
  struct hooks *self = self_;
  self->services->unwatch_held(self->services);
  self->services->host_free(self->services, self, sizeof *self);
}

static const struct hipmm_option hooks_option_table[] = {
    {.name = "hooks",
     .type = HIPMM_OPTION_OBJECT,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct hooks_options, hooks),
     .unit = "hooks",
     .doc = "Name of the function that the program registered with hipmm_hooks_register(); it must not call hipmm"},
};

static const struct hipmm_ops hooks_ops = {
    .struct_size = sizeof hooks_ops,
    .allocate = hooks_allocate,
    .deallocate = hooks_deallocate,
};

HIPMM_EXPORT extern const struct hipmm_plugin hooks_LTX_hipmm_plugin;

const struct hipmm_plugin hooks_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(hooks_option_table, struct hooks_options),
    .type = "hooks",
    .version = "1.0",
    .doc = "Reports allocations, frees, growth and shortage of memory to the program",
    .ops = &hooks_ops,
    .create = hooks_create,
    .destroy = hooks_destroy,
};
