/* SPDX-License-Identifier: MIT */
/* attempt.c: the attempt that the calling thread makes. See attempt.h. Called on the path of allocations, after one has
 * failed, around the building of resources, and around functions of the program. */
#include "attempt.h"
#include "../base/callers.h"
#include "../base/error.h"
#include "../plugin/plugin.h"
#include "stack.h"

_Thread_local struct attempt this_attempt;

/* ---- What memory is of one kind ---- */

/* Device memory is one kind; managed and host memory are kinds of their own, by type. */
bool oom_source_is_same_memory(const struct oom_source *oom_source, const struct instance *other)
{
  const struct hipmm_plugin *plugin = &other->node->plugin->descriptor;
  if (plugin->role != HIPMM_ROLE_SOURCE) return false;
  return plugin == oom_source->source || !((plugin->flags | oom_source->source->flags) & HIPMM_PLUGIN_HOST_MEMORY);
}

const struct instance *oom_source_find(const struct oom_source *oom_source, const struct instance *instance)
{
  CLOSURE_EACH(one, instance)
    if (oom_source_is_same_memory(oom_source, one)) return one;
  return NULL;
}

/* ---- Who can be asked ---- */

/* Movable buffers give back what they have of the upstream. To move them takes memory of the resources that options name. */
bool attempt_is_donor(const struct instance *instance, const struct oom_source *oom_source)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  const struct instance *from = instance->resource.ops->moving ? dependencies_of(instance)->direct[0] : instance;
  return descriptor_trims(plugin) && oom_source_find(oom_source, from);
}

struct attempt_search {
  const struct instance *failed;
  const struct oom_source *oom_source;
  size_t n_donors;
};

static bool attempt_has_donor(const struct stack *stack, void *search_)
{
  struct attempt_search *search = search_;
  if (stack->device != search->oom_source->device) return false;
  STACK_EACH(instance, stack) {
    bool is_adaptor = instance->node->plugin->descriptor.role == HIPMM_ROLE_ADAPTOR;
    if (is_adaptor && !instance->resource.ops->moving) continue;
    if (!attempt_is_donor(instance, search->oom_source)) continue;
    if (search->n_donors++ || !search->failed) return true;
    if (instance != search->failed && !dependencies_include(search->failed, instance)) return true;
  }
  return false;
}

bool attempt_can_ask_others(const struct instance *failed, const struct oom_source *oom_source)
{
  struct attempt_search search = {.failed = failed, .oom_source = oom_source};
  return stack_any(attempt_has_donor, &search);
}

bool attempt_is_out_of_memory(enum hipmm_status status)
{
  return status == HIPMM_E_OUT_OF_MEMORY && this_attempt.oom_source.source && error_is_out_of_device_memory();
}

void attempt_note_oom(const struct instance *source, size_t bytes)
{
  if (bytes > this_attempt.most_bytes) this_attempt.most_bytes = bytes;
  const struct hipmm_plugin *plugin = &source->node->plugin->descriptor;
  this_attempt.oom_source =
      (struct oom_source){.device = source->stack->device, .source = plugin->role == HIPMM_ROLE_SOURCE ? plugin : NULL};
}

enum hipmm_reclaim_level attempt_reclaim_level(const struct hipmm_services *services, enum hipmm_status status)
{
  if (status == HIPMM_CALL_AGAIN) return HIPMM_RECLAIM_IDLE;
  if (this_attempt.reclaim_level && !this_attempt.n_inner) return this_attempt.reclaim_level;
  if (this_attempt.n_inner || !attempt_is_out_of_memory(status)) return HIPMM_RECLAIM_ALL;
  if (!this_attempt.holds_back && attempt_can_ask_others(instance_of_services(services), &this_attempt.oom_source)) {
    this_attempt.holds_back = true;
    this_attempt.held_back_for = this_attempt.oom_source;
  }
  return this_attempt.holds_back ? HIPMM_RECLAIM_IDLE : HIPMM_RECLAIM_ALL;
}

/* ---- Functions of the program ---- */

void attempt_enter_program(const struct hipmm_services *services)
{
  caller_self()->programs++;
  this_attempt.n_inner++;
  this_attempt.n_programs++;
  atomic_fetch_add(&instance_of_services(services)->in_program, 1);
}

void attempt_leave_program(const struct hipmm_services *services)
{
  atomic_fetch_sub(&instance_of_services(services)->in_program, 1);
  this_attempt.n_programs--;
  this_attempt.n_inner--;
  caller_self()->programs--;
}

bool attempt_is_in_program(void)
{
  return this_attempt.n_programs;
}

enum hipmm_status attempt_check_wait(const struct instance *instance)
{
  bool is_entered = false;
  if (!this_attempt.n_programs) return HIPMM_OK;
  CLOSURE_EACH(one, instance) is_entered |= atomic_load(&one->in_program) > 0;
  if (!is_entered) return HIPMM_OK;
  return error_refuse(
      HIPMM_E_STATE, instance->node->name,
      "another thread is in a call of it, and this thread is in a function of the program that was called "
      "in the middle of an allocation: such a function does not wait for a resource, since a thread in "
      "another such function may have it",
      0, 0, 0);
}

enum hipmm_status attempt_ask_program(const struct hipmm_services *services, enum hipmm_status status,
                                      const struct hipmm_question *question, size_t bytes)
{
  const struct instance *asker = instance_of_services(services);
  struct refusals *refusals = &this_attempt.refusals;
  unsigned n = refusals->n_inner == this_attempt.n_inner ? refusals->n : 0, i = refusals->n_passed;
  while (i < n && refusals->askers[i] != asker) i++;
  if (i < n) refusals->n_passed = i + 1;
  if (i < n || n == MOST_REFUSALS) return status;
  this_attempt.question = (struct question){asker, question, bytes, status};
  return HIPMM_CALL_AGAIN;
}

/* The thread holds nothing that it took in the call. Its error stays that of the upstream. */
static bool attempt_put_question(const struct question *question)
{
  const struct attempt outer = this_attempt;
  const struct error_record failure = error_mark();
  this_attempt = (struct attempt){.n_inner = outer.n_inner, .n_programs = outer.n_programs};
  caller_self()->programs++;
  bool is_yes = question->functions->ask(question->asker->self, question->bytes);
  caller_self()->programs--;
  this_attempt = outer;
  error_return_to_mark(&failure);
  return is_yes;
}

/* After a yes, what the asker asks anew includes what the resources below it asked in its last attempt. */
static void attempt_note_answer(const struct instance *asker, bool is_yes)
{
  struct refusals *refusals = &this_attempt.refusals;
  while (is_yes && refusals->n && dependencies_include(asker, refusals->askers[refusals->n - 1])) refusals->n--;
  if (!is_yes) refusals->askers[refusals->n++] = asker;
  refusals->n_passed = 0;
}

enum hipmm_status attempt_repeat_after(enum hipmm_status status, const struct instance *top,
                                       enum hipmm_status (*call)(void *closure), void *closure)
{
  if (status != HIPMM_CALL_AGAIN) return status;
  struct question tried = {.asker = NULL};
  const struct refusals outer = this_attempt.refusals;
  this_attempt.refusals = (struct refusals){.n_inner = this_attempt.n_inner};
  /* A defective plugin may return it by itself, or each time. */
  while (status == HIPMM_CALL_AGAIN && this_attempt.question.asker && this_attempt.refusals.n < MOST_REFUSALS) {
    const struct question question = this_attempt.question;
    this_attempt.question.asker = NULL;
    bool is_yes = attempt_put_question(&question);
    if (is_yes) tried = question;
    if (!is_yes && tried.asker == question.asker) tried.asker = NULL;
    attempt_note_answer(question.asker, is_yes);
    status = is_yes || question.asker != top ? call(closure) : question.status;
  }
  this_attempt.refusals = outer;
  if (tried.asker) tried.functions->tried(tried.asker->self, status);
  return status;
}

enum hipmm_status attempt_repeat(enum hipmm_status (*call)(void *closure), void *closure)
{
  return attempt_repeat_after(call(closure), NULL, call, closure);
}
