/* SPDX-License-Identifier: MIT */
/* failure_callback.c: an adaptor that calls a function of the program when its upstream is out of memory, and retries as
 * long as the function asks for it (RMM's contract: without a limit). Other failures are passed on.
 *
 * The core calls the program's function, where the allocation has entered hipmm and no resource is in a call of the
 * thread any more, and then repeats the allocation (services->ask_program). So the function may use every resource, this
 * one and those above too. If its own allocation is out of memory here, that allocation fails: a thread that is in the
 * function never enters it again for the same resource. */
#include "../../core/base/lock_order.h"
#include "../common/program_calls.h"

#include <hipmm/plugin.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct failure_callback_options {
  const struct hipmm_failure_handler *callback;
};

struct failure_callback {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  pthread_mutex_t lock;                 /* failure */
  struct hipmm_failure_handler failure; /* the program's function */
  atomic_uint_fast64_t calls, rescues, failures;
};

static void failure_callback_count(struct failure_callback *self, enum hipmm_status status)
{
  atomic_fetch_add_explicit(status ? &self->failures : &self->rescues, 1, memory_order_relaxed);
}

/* Calls the program's function, which may be replaced meanwhile. */
static int failure_callback_ask(void *resource, size_t bytes)
{
  struct failure_callback *self = resource;
  pthread_mutex_lock(&self->lock);
  struct hipmm_failure_handler failure = self->failure;
  pthread_mutex_unlock(&self->lock);
  atomic_fetch_add_explicit(&self->calls, 1, memory_order_relaxed);
  struct program_call call;
  program_calls_enter(&call, self);
  lock_order_enter_program();
  int again = failure.callback(failure.arg, bytes);
  lock_order_leave_program();
  program_calls_leave(&call);
  if (!again) failure_callback_count(self, HIPMM_E_OUT_OF_MEMORY);
  return again;
}

static void failure_callback_tried(void *resource, enum hipmm_status status)
{
  failure_callback_count(resource, status);
}

static const struct hipmm_question failure_callback_question = {failure_callback_ask, failure_callback_tried};

static __attribute__((noinline)) enum hipmm_status failure_callback_fail(struct failure_callback *self,
                                                                         enum hipmm_status status, size_t bytes)
{
  const struct hipmm_services *services = self->services;
  if (hipmm_is_tried_again(services, status)) return status;
  if (!program_calls_forbid_reentry(self))
    return services->ask_program(services, status, &failure_callback_question, bytes);
  failure_callback_count(self, status);
  return status;
}

static enum hipmm_status failure_callback_allocate(void *resource, size_t bytes, size_t alignment,
                                                   hipmm_stream_t stream, void **ptr_out)
{
  struct failure_callback *self = resource;
  enum hipmm_status status = hipmm_upstream_allocate(self->upstream, bytes, alignment, stream, ptr_out);
  return __builtin_expect(hipmm_is_out_of_memory(status), 0) ? failure_callback_fail(self, status, bytes) : status;
}

static enum hipmm_status failure_callback_deallocate(void *resource, void *ptr, size_t bytes, size_t alignment,
                                                     hipmm_stream_t stream)
{
  struct failure_callback *self = resource;
  return hipmm_upstream_deallocate(self->upstream, ptr, bytes, alignment, stream);
}

/* ---- Values ---- */

enum failure_callback_value { CALLS, RESCUES, FAILURES };

static const struct hipmm_feature failure_callback_values[] = {
    [CALLS] = {"calls", "calls", "Calls of the program's function"},
    [RESCUES] = {"rescues", "allocations", "Allocations that succeeded after a call"},
    [FAILURES] = {"failures", "allocations", "Allocations that found no memory even after all calls"},
};

static enum hipmm_status failure_callback_query(void *resource, size_t index, int64_t *value_out)
{
  struct failure_callback *self = resource;
  const atomic_uint_fast64_t *values[] = {
      [CALLS] = &self->calls, [RESCUES] = &self->rescues, [FAILURES] = &self->failures};
  *value_out = (int64_t)atomic_load_explicit(values[index], memory_order_relaxed);
  return HIPMM_OK;
}

/* ---- Life ---- */

static enum hipmm_status failure_callback_reconfigure(void *resource, const char *option, const void *options)
{
  struct failure_callback *self = resource;
  const struct failure_callback_options *given = options;
  (void)option; /* there is one */
  pthread_mutex_lock(&self->lock);
  self->failure = *given->callback;
  pthread_mutex_unlock(&self->lock);
  return HIPMM_OK;
}

static enum hipmm_status failure_callback_create(const struct hipmm_services *services, const void *options,
                                                 struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                                 void **self_out)
{
  const struct failure_callback_options *given = options;
  (void)n_upstreams; /* one, as the descriptor says */
  struct failure_callback *self = services->host_allocate(services, sizeof *self);
  if (!self) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  self->services = services;
  self->upstream = upstreams[0];
  self->failure = *given->callback;
  pthread_mutex_init(&self->lock, NULL);
  *self_out = self;
  return HIPMM_OK;
}

static void failure_callback_destroy(void *resource)
{
  struct failure_callback *self = resource;
  pthread_mutex_destroy(&self->lock);
  self->services->host_free(self->services, self, sizeof *self);
}

static const struct hipmm_option failure_callback_option_table[] = {
    {.name = "callback",
     .type = HIPMM_OPTION_OBJECT,
     .flags = HIPMM_OPTION_REQUIRED | HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct failure_callback_options, callback),
     .unit = "failure",
     .doc = "Name of the function that the program registered with hipmm_failure_handler_register(); nonzero from it "
            "means: try again. It may use every resource, those above this one too"},
};

static const struct hipmm_ops failure_callback_ops = {
    .struct_size = sizeof failure_callback_ops,
    .allocate = failure_callback_allocate,
    .deallocate = failure_callback_deallocate,
    .query = failure_callback_query,
    .reconfigure = failure_callback_reconfigure,
};

HIPMM_EXPORT extern const struct hipmm_plugin failure_callback_LTX_hipmm_plugin;

const struct hipmm_plugin failure_callback_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "failure_callback",
    .version = "1.0",
    .doc =
        "Calls a function of the program when the upstream is out of memory, and retries if the function asks for it",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = failure_callback_option_table,
    .n_options = sizeof failure_callback_option_table / sizeof *failure_callback_option_table,
    .options_bytes = sizeof(struct failure_callback_options),
    .values = failure_callback_values,
    .n_values = sizeof failure_callback_values / sizeof *failure_callback_values,
    .ops = &failure_callback_ops,
    .create = failure_callback_create,
    .destroy = failure_callback_destroy,
};
