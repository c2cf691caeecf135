/* SPDX-License-Identifier: MIT */
/* neighbours.c: asks the resources of a device for idle memory, and tries again. See neighbours.h. Called on the
 * path of allocations, after one has failed, and around the building of resources. */
#include "neighbours.h"
#include "../base/callers.h"
#include "../base/deadline.h"
#include "../base/error.h"
#include "../plugin/plugin.h"
#include "../runtime/hip.h"
#include "stack.h"

#include <stdlib.h>

enum {
  MOST_ROUNDS = 64,    /* while other threads take the memory that was given back */
  TURN_MS = 50,        /* the longest wait for another thread that asks */
  MOST_REFUSALS = 128, /* of the program, in one call; then it is not asked again */
};

/* What a resource below asks the program. */
struct question {
  const struct instance *asker; /* NULL: none */
  const struct hipmm_question *functions;
  size_t bytes;
  enum hipmm_status status; /* of its upstream */
};

/* The questions of a call to which the program has answered no, in their order. The call that is made again comes to them
 * again, and then gets further. */
struct refusals {
  const struct instance *askers[MOST_REFUSALS];
  unsigned n;
  unsigned n_passed; /* by the call that is under way */
  unsigned n_inner;  /* of the call, so that calls within it do not take them for their own */
};

static _Thread_local struct neighbours_thread {
  struct exhausted exhausted; /* as of the last HIP call of a source that failed so */
  unsigned n_inner;           /* neighbours_enter_inner(), and the next */
  unsigned n_programs;        /* neighbours_enter_program() */
  enum hipmm_effort effort;   /* of the attempt that is under way; 0: of the first, or there is none */
  bool is_building;           /* within neighbours_build() */
  size_t most_bytes;          /* that a HIP call asked for in vain since it began */
  bool holds_back;            /* a resource was told to fail at once, */
  struct exhausted told;      /* for this; a later call of the same op may have failed for something else */
  struct question question;   /* the last one */
  struct refusals refusals;
} here;

/* ---- Who can be asked ---- */

/* Whether the instance may hold idle memory of that kind, and can give it. */
static bool neighbours_is_giver(const struct instance *instance, const struct exhausted *exhausted)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  return descriptor_trims(plugin) && exhausted_source_of(exhausted, instance);
}

struct neighbours_search {
  const struct instance *failed;
  const struct exhausted *exhausted;
  size_t n_givers;
};

static bool neighbours_has_giver(const struct stack *stack, void *search_)
{
  struct neighbours_search *search = search_;
  if (stack->device != search->exhausted->device) return false;
  STACK_EACH(instance, stack) {
    if (instance->node->plugin->descriptor.role == HIPMM_ROLE_ADAPTOR) continue;
    if (!neighbours_is_giver(instance, search->exhausted)) continue;
    if (search->n_givers++ || !search->failed) return true;
    if (instance != search->failed && !links_stand_on(search->failed, instance)) return true;
  }
  return false;
}

/* Whether another resource than those that have failed can be asked. A resource has used what it holds itself. A resource that
 * holds its lock may call this, so no reference to a stack is taken: the last one destroys the stack. */
static bool neighbours_exist(const struct instance *failed /* NULL: none that is left */,
                             const struct exhausted *exhausted)
{
  struct neighbours_search search = {.failed = failed, .exhausted = exhausted};
  return stack_any(neighbours_has_giver, &search);
}

/* Whether the failure that the thread's record tells is that of a runtime without memory. */
static bool neighbours_is_exhausted(enum hipmm_status status)
{
  return status == HIPMM_E_OUT_OF_MEMORY && here.exhausted.source && error_is_exhausted();
}

void neighbours_note_exhausted(const struct instance *source, size_t bytes)
{
  if (bytes > here.most_bytes) here.most_bytes = bytes;
  const struct hipmm_plugin *plugin = &source->node->plugin->descriptor;
  here.exhausted =
      (struct exhausted){.device = source->stack->device, .source = plugin->role == HIPMM_ROLE_SOURCE ? plugin : NULL};
}

enum hipmm_effort neighbours_effort(const struct instance *instance, enum hipmm_status status)
{
  if (status == HIPMM_CALL_AGAIN) return HIPMM_EFFORT_IDLE;
  if (here.effort && !here.n_inner) return here.effort;
  if (here.n_inner || !neighbours_is_exhausted(status)) return HIPMM_EFFORT_ALL;
  if (!here.holds_back && neighbours_exist(instance, &here.exhausted)) {
    here.holds_back = true;
    here.told = here.exhausted;
  }
  return here.holds_back ? HIPMM_EFFORT_IDLE : HIPMM_EFFORT_ALL;
}

bool neighbours_are_building(void)
{
  return here.is_building;
}

void neighbours_enter_inner(void)
{
  here.n_inner++;
}

void neighbours_leave_inner(void)
{
  here.n_inner--;
}

/* ---- Asking ---- */

static int64_t neighbours_held_bytes(int device)
{
  int64_t bytes = 0;
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    if (stack->device == device) bytes += stack_held_bytes(stack);
  return bytes;
}

/* From the top down, as hipmm_device_trim() does. A resource that fails gives nothing. */
static void neighbours_ask_stack(const struct stack *stack, const struct exhausted *exhausted, size_t keep_bytes)
{
  STACK_EACH(instance, stack)
    if (neighbours_is_giver(instance, exhausted)) instance->resource.ops->trim(instance->resource.self, keep_bytes);
}

/* Asks the stacks of the device until they have given `bytes`. The last built stacks come first: they may stand on
 * earlier stacks, which get the memory back from them. */
static void neighbours_ask(const struct exhausted *exhausted, uint64_t bytes)
{
  size_t n;
  struct stack **stacks = stack_collect(exhausted->device, &n);
  for (size_t i = n; i-- > 0; stack_unpin(stacks[i])) {
    if (!bytes) continue;
    int64_t held = stack_held_bytes(stacks[i]);
    neighbours_ask_stack(stacks[i], exhausted, (uint64_t)held > bytes ? (size_t)((uint64_t)held - bytes) : 0);
    int64_t given = held - stack_held_bytes(stacks[i]);
    if (given > 0) bytes -= (uint64_t)given < bytes ? (uint64_t)given : bytes;
  }
  free(stacks);
}

/* ---- Functions of the program ---- */

void neighbours_enter_program(struct instance *source)
{
  here.n_inner++;
  here.n_programs++;
  atomic_fetch_add(&source->in_program, 1);
}

void neighbours_leave_program(struct instance *source)
{
  atomic_fetch_sub(&source->in_program, 1);
  here.n_programs--;
  here.n_inner--;
}

bool neighbours_are_in_program(void)
{
  return here.n_programs;
}

enum hipmm_status neighbours_check_wait(const struct instance *instance)
{
  bool is_entered = false;
  if (!here.n_programs) return HIPMM_OK;
  CLOSURE_EACH(one, instance) is_entered |= atomic_load(&one->in_program) > 0;
  if (!is_entered) return HIPMM_OK;
  return error_refuse(
      HIPMM_E_STATE, instance->node->name,
      "another thread is in a call of it, and this thread is in a function of the program that was called "
      "in the middle of an allocation: such a function does not wait for a resource, since a thread in "
      "another such function may have it",
      0, 0, 0);
}

enum hipmm_status neighbours_ask_program(const struct instance *asker, enum hipmm_status status,
                                         const struct hipmm_question *question, size_t bytes)
{
  struct refusals *refusals = &here.refusals;
  unsigned n = refusals->n_inner == here.n_inner ? refusals->n : 0, i = refusals->n_passed;
  while (i < n && refusals->askers[i] != asker) i++;
  if (i < n) refusals->n_passed = i + 1;
  if (i < n || n == MOST_REFUSALS) return status;
  here.question = (struct question){asker, question, bytes, status};
  return HIPMM_CALL_AGAIN;
}

/* The thread holds nothing that it took in the call. The function may leave by longjmp() or an exception, against the
 * contract: then the thread is as in no call. The thread's error stays that of the upstream. */
static bool neighbours_put_question(const struct question *question)
{
  const struct neighbours_thread outer = here;
  struct hipmm_error error = {.struct_size = sizeof error};
  hipmm_last_error(&error);
  here = (struct neighbours_thread){.n_inner = outer.n_inner, .n_programs = outer.n_programs};
  caller_enter_program(caller_self(), true);
  bool is_yes = question->functions->ask(question->asker->self, question->bytes);
  caller_leave_program(caller_self());
  here = outer;
  error_set_located(&error);
  return is_yes;
}

/* After a yes, what the asker asks anew includes what the resources below it asked in its last attempt. */
static void neighbours_note_answer(const struct instance *asker, bool is_yes)
{
  struct refusals *refusals = &here.refusals;
  while (is_yes && refusals->n && links_stand_on(asker, refusals->askers[refusals->n - 1])) refusals->n--;
  if (!is_yes) refusals->askers[refusals->n++] = asker;
  refusals->n_passed = 0;
}

/* `call` has returned `status`. It entered hipmm at `top`, which has no other way than what it asks; NULL: not known. Such a
 * call ends with a no: another try of the upstream would be one more than there was before the question. */
static enum hipmm_status neighbours_repeat_after(enum hipmm_status status, const struct instance *top,
                                                 enum hipmm_status (*call)(void *closure), void *closure)
{
  if (status != HIPMM_CALL_AGAIN) return status;
  struct question tried = {.asker = NULL};
  const struct refusals outer = here.refusals;
  here.refusals = (struct refusals){.n_inner = here.n_inner};
  /* A defective plugin may return it by itself, or each time. */
  while (status == HIPMM_CALL_AGAIN && here.question.asker && here.refusals.n < MOST_REFUSALS) {
    const struct question question = here.question;
    here.question.asker = NULL;
    bool is_yes = neighbours_put_question(&question);
    if (is_yes) tried = question;
    if (!is_yes && tried.asker == question.asker) tried.asker = NULL;
    neighbours_note_answer(question.asker, is_yes);
    status = is_yes || question.asker != top ? call(closure) : question.status;
  }
  here.refusals = outer;
  if (tried.asker) tried.functions->tried(tried.asker->self, status);
  return status;
}

enum hipmm_status neighbours_repeat(enum hipmm_status (*call)(void *closure), void *closure)
{
  return neighbours_repeat_after(call(closure), NULL, call, closure);
}

/* ---- Trying again ---- */

/* What is tried: an allocation, or the building of resources. */
struct trial {
  const struct neighbours_call *call; /* NULL: building */
  size_t alignment;
  enum hipmm_status (*build)(void *closure);
  void *closure;
  size_t bytes;
  hipmm_stream_t stream;
};

static enum hipmm_status neighbours_make(void *trial_)
{
  const struct trial *trial = trial_;
  const struct neighbours_call *call = trial->call;
  return call ? call->resource->ops->allocate(call->resource->self, call->bytes, trial->alignment, call->stream,
                                              call->ptr_out)
              : trial->build(trial->closure);
}

static const struct instance *neighbours_top(const struct trial *trial)
{
  return trial->call ? instance_from(trial->call->resource) : NULL;
}

static enum hipmm_status neighbours_attempt(struct trial *trial, enum hipmm_effort effort)
{
  here.effort = effort;
  enum hipmm_status status =
      neighbours_repeat_after(neighbours_make(trial), neighbours_top(trial), neighbours_make, trial);
  here.effort = (enum hipmm_effort)0;
  return status;
}

/* Asks first for the missing bytes and then for all idle memory, until the allocation succeeds, or until nothing was
 * given and nothing was taken meanwhile. Another thread may take what a neighbour gave, and may hold it idle when
 * this thread asks again. */
static enum hipmm_status neighbours_try(struct trial *trial, const struct exhausted *exhausted,
                                        enum hipmm_effort effort)
{
  enum hipmm_status status = HIPMM_E_OUT_OF_MEMORY;
  uint64_t bytes = effort == HIPMM_EFFORT_IDLE ? trial->bytes : UINT64_MAX;
  for (unsigned round = 0; round < MOST_ROUNDS; round++, bytes = UINT64_MAX) {
    int64_t held = neighbours_held_bytes(exhausted->device);
    here.effort = effort;
    neighbours_ask(exhausted, bytes);
    status = neighbours_attempt(trial, effort);
    if (!neighbours_is_exhausted(status)) return status;
    if (bytes == UINT64_MAX && neighbours_held_bytes(exhausted->device) == held) return status;
  }
  return status;
}

/* A request that no device could serve takes no idle memory from other resources. */
static bool neighbours_may_fit(const struct exhausted *exhausted, size_t bytes)
{
  size_t unused, total;
  int previous = hip_enter_device(exhausted->device);
  int code = hip_table()->MemGetInfo(&unused, &total);
  if (code) hip_table()->GetLastError();
  hip_leave_device(exhausted->device, previous);
  return code || bytes <= total || exhausted->source->flags & HIPMM_PLUGIN_HOST_MEMORY;
}

/* One thread asks at a time, so that two do not take from each other in turn. The wait for another thread is limited: a
 * resource that is asked may call a function of the program, which may wait for this thread. */
static bool neighbours_take_turn(pthread_mutex_t *turn)
{
  struct timespec until = deadline_in_ms(CLOCK_REALTIME, TURN_MS);
  return !pthread_mutex_timedlock(turn, &until);
}

/* A captured stream forbids waits for the device. */
static enum hipmm_status neighbours_try_in_turn(struct trial *trial, const struct exhausted *exhausted)
{
  static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
  bool is_in_turn = neighbours_take_turn(&turn);
  enum hipmm_status status = neighbours_try(trial, exhausted, HIPMM_EFFORT_IDLE);
  if (neighbours_is_exhausted(status) && !hip_is_captured(exhausted->device, trial->stream))
    status = neighbours_try(trial, exhausted, HIPMM_EFFORT_WAIT);
  if (is_in_turn) pthread_mutex_unlock(&turn);
  return status;
}

/* The first attempt has failed with `status`. */
static enum hipmm_status neighbours_try_again(struct trial *trial, enum hipmm_status status)
{
  bool is_promised = here.holds_back && status == HIPMM_E_OUT_OF_MEMORY; /* or an earlier op succeeded after all */
  here.holds_back = false;
  if (!is_promised && !neighbours_is_exhausted(status)) return status;
  const struct exhausted exhausted = is_promised ? here.told : here.exhausted;
  if (is_promised || neighbours_exist(trial->call ? instance_from(trial->call->resource) : NULL, &exhausted)) {
    if (neighbours_may_fit(&exhausted, trial->bytes)) status = neighbours_try_in_turn(trial, &exhausted);
    if (status) status = neighbours_attempt(trial, HIPMM_EFFORT_ALL);
  }
  if (neighbours_is_exhausted(status)) holders_explain(&here.exhausted, trial->bytes);
  return status;
}

enum hipmm_status neighbours_allocate(const struct neighbours_call *call, size_t alignment, enum hipmm_status status)
{
  struct trial trial = {.call = call, .alignment = alignment, .bytes = call->bytes, .stream = call->stream};
  status = neighbours_repeat_after(status, neighbours_top(&trial), neighbours_make, &trial);
  if (!here.n_inner && !here.effort)
    status = neighbours_try_again(&trial, status);
  else
    here.holds_back = false;
  return instance_finish_op(instance_from(call->resource), status, "allocate");
}

enum hipmm_status neighbours_build(enum hipmm_status (*build)(void *closure), void *closure)
{
  if (here.n_inner || here.effort || here.is_building) return build(closure);
  here.is_building = true;
  here.holds_back = false;
  here.most_bytes = 0;
  enum hipmm_status status = build(closure);
  struct trial trial = {.build = build, .closure = closure, .bytes = here.most_bytes};
  if (status) status = neighbours_try_again(&trial, status);
  here.is_building = false;
  return status;
}

enum hipmm_status neighbours_allocate_and_count(const struct neighbours_call *call, size_t alignment,
                                                enum hipmm_status status)
{
  status = neighbours_allocate(call, alignment, status);
  if (status) error_count_allocation();
  return status;
}
