/* SPDX-License-Identifier: MIT */
/* test_interleave_core.c: what the core reads without a lock, as it is, with two threads in all orders: references and pins of
 * stacks beside walks over all stacks, calls beside hipmm_finalize(), the registry of streams beside its visitors, and handles. A stack
 * or stream ends once, after its last user, and nothing is used after it was freed. Mistakes must be found. */
#include "../../core/base/lifecycle.h"
#include "../../core/call/handle.h"
#include "../../core/runtime/hip.h"
#include "../../core/stack/stack.h"
#include "../../core/stack/stream_registry.h"
#include "interleave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FIRST = 0, SECOND = 1 };

/* The last three are in the place of callers: they wait for no pins, leave no stream to its visitor, and free what they only saw. */
static enum { NO_MISTAKE, NO_FENCE, WEAK_STACK, NO_AWAIT, NO_VISITOR, NO_CLOSE, MISTAKES } mistake;

static void begin_mistake(void)
{
  if (mistake == NO_FENCE) interleave_drop_fences();
}

/* ---- Stacks ---- */

static struct stack *stack;
static atomic_int n_destroyed;

static void destroy_stack(struct stack *ended)
{
  stack_unlist(ended);
  ended->device = -1; /* nobody reads it now */
  free(ended);
  atomic_fetch_add_explicit(&n_destroyed, 1, memory_order_relaxed);
}

static struct stack *new_stack(const char *name)
{
  struct stack *made = calloc(1, sizeof *made);
  if (!made) abort();
  made->device = 1;
  made->entry.holds = 1;
  made->entry.destroy = destroy_stack;
  if (stack_list(made, name, true)) interleave_note("a name is refused");
  stack_show(made);
  return made;
}

static void look_at(const struct stack *seen)
{
  if (seen->device != 1) interleave_note("a stack is visited that was destroyed");
}

static void begin_stack(void)
{
  begin_mistake();
  atomic_store(&n_destroyed, 0);
  stack = new_stack("one");
  if (mistake == WEAK_STACK) interleave_weaken(stack, sizeof *stack);
}

static void begin_two_references(void)
{
  begin_stack();
  stack_retain(stack);
}

static void end_without_stack(void)
{
  if (atomic_load(&n_destroyed) != 1) interleave_note("the stack is not destroyed once");
  if (stack_next(NULL)) interleave_note("a stack is left");
}

static void walk(void)
{
  for (struct stack *seen = stack_next(NULL); seen; seen = stack_next(seen)) look_at(seen);
}

static void collect(void)
{
  size_t n = 0;
  struct stack **seen = stack_collect(1, &n);
  for (size_t i = 0; i < n; i++) {
    look_at(seen[i]);
    stack_unpin(seen[i]);
  }
  free(seen);
}

static void use_by_name(void)
{
  struct stack *named = stack_named("one");
  if (!named) return;
  look_at(named);
  stack_release(named);
}

static void release(void)
{
  stack_release(stack);
}

static void try_and_release(void)
{
  if (!stack_try_release(stack)) stack_release(stack);
}

/* As hipmm_finalize(): afterwards no walk uses a stack without a reference. */
static void finalize_stacks(void)
{
  stack_release(stack);
  if (mistake != NO_AWAIT) stack_await_pins();
  if (!atomic_load_explicit(&n_destroyed, memory_order_relaxed))
    interleave_note("a stack lives on after the wait for pins");
}

/* A reference in the place of a pin, as for a visitor of the program. */
static void pin_and_retain(void)
{
  struct stack *seen = stack_next(NULL);
  if (!seen) return;
  stack_retain(seen);
  stack_unpin(seen);
  look_at(seen);
  stack_release(seen);
}

static void add_and_release(void)
{
  stack_release(new_stack("two"));
}

static void end_with_two(void)
{
  release();
  if (atomic_load(&n_destroyed) != 2) interleave_note("the stacks are not destroyed once each");
}

/* ---- Calls beside hipmm_finalize() ---- */

static int *data;
static int *_Atomic current;

static void begin_call(void)
{
  begin_mistake();
  atomic_store(&lifecycle_now, LIFECYCLE_READY);
  data = calloc(1, sizeof *data);
}

static void enter_and_leave(void)
{
  struct caller_thread *this_thread = lifecycle_enter_thread();
  if (this_thread) lifecycle_leave_thread(this_thread);
}

/* The thread has its place among the callers. */
static void begin_known_call(void)
{
  begin_call();
  interleave_alone(FIRST, enter_and_leave);
}

static void call(void)
{
  struct caller_thread *this_thread = lifecycle_enter_thread();
  if (!this_thread) return;
  ++*data;
  lifecycle_leave_thread(this_thread);
}

/* A thread that is at its end has no place of its own among the callers. */
static void begin_call_at_the_end(void)
{
  begin_known_call();
  interleave_alone(FIRST, interleave_end_thread);
}

static void call_twice(void)
{
  call();
  call();
}

static void call_within_call(void)
{
  struct caller_thread *this_thread = lifecycle_enter_thread();
  if (!this_thread) return;
  call();
  ++*data;
  lifecycle_leave_thread(this_thread);
}

static void call_and_end(void)
{
  call();
  interleave_end_thread();
}

static void finalize(void)
{
  if (lifecycle_begin_change()) interleave_note("a change is refused");
  lifecycle_await_calls();
  free(data);
  lifecycle_end_change(LIFECYCLE_BEFORE);
}

static void begin_current(void)
{
  begin_known_call();
  free(data);
  data = NULL;
  atomic_store(&current, calloc(1, sizeof *data));
}

static void call_with_borrowed(void)
{
  struct caller_thread *this_thread = lifecycle_enter_thread();
  if (!this_thread) return;
  ++*atomic_load(&current); /* as device_table_resource_if_built() */
  lifecycle_leave_thread(this_thread);
}

/* As device_table_set_resource(). */
static void replace_current(void)
{
  int *after = calloc(1, sizeof *after), *before;
  if (!after) abort();
  before = atomic_exchange(&current, after);
  if (callers_have_left())
    free(before);
  else
    data = before;
}

static void end_current(void)
{
  free(atomic_load(&current));
  free(data);
}

/* ---- Streams ---- */

/* In one bucket of the registry. */
#define STREAM(n) ((hipmm_stream_t)(uintptr_t)(0x10000 + (uintptr_t)(n)*streams_apart))

static uintptr_t streams_apart = 16;
static bool is_alive[3];

static int stream_query(hipmm_stream_t stream)
{
  (void)stream;
  return 0;
}

static const struct hipmm_hip runtime = {.struct_size = sizeof runtime, .StreamQuery = stream_query};

/* In the place of hip_table(). */
const struct hipmm_hip *__wrap_hip_table(void);
const struct hipmm_hip *__wrap_hip_table(void)
{
  return &runtime;
}

static void find_bucket(void)
{
  const uintptr_t wanted = ((uintptr_t)0x10000 >> 4) * 0x9E3779B97F4A7C15u >> 56;
  for (streams_apart = 16;; streams_apart += 16)
    if (((0x10000 + streams_apart) >> 4) * 0x9E3779B97F4A7C15u >> 56 == wanted &&
        ((0x10000 + 2 * streams_apart) >> 4) * 0x9E3779B97F4A7C15u >> 56 == wanted)
      return;
}

static void add_stream(int n)
{
  is_alive[n] = true;
  if (!stream_registry_add(STREAM(n), n, STREAM_OF_PROGRAM)) interleave_note("a stream is not added");
}

static void end_stream(hipmm_stream_t stream, int device, enum stream_owner owner)
{
  int n = 0;
  (void)device, (void)owner;
  while (stream != STREAM(n)) n++;
  if (!is_alive[n]) interleave_note("a stream is destroyed twice");
  is_alive[n] = false;
}

static void remove_stream(int n)
{
  enum stream_removal removal = stream_registry_remove(STREAM(n), STREAM_OF_PROGRAM, end_stream);
  if (removal == STREAM_REMOVED || (removal && mistake == NO_VISITOR)) end_stream(STREAM(n), n, STREAM_OF_PROGRAM);
}

static void begin_streams(void)
{
  begin_mistake();
  add_stream(0);
  add_stream(1);
}

static void end_streams(void)
{
  if (is_alive[1]) interleave_note("a removed stream is not destroyed");
  for (int n = 0; n < 3; n++) remove_stream(n);
}

/* Beside others in its bucket, whose entries are used again. */
static void find_stream(void)
{
  int device = -1;
  if (stream_registry_find(STREAM(0), &device) != STREAM_OF_PROGRAM || device != 0)
    interleave_note("a stream is not found");
  if (stream_registry_number(STREAM(2)) && stream_registry_find(STREAM(2), &device) && device != 2)
    interleave_note("a stream is found that is another");
}

static void remove_and_add(void)
{
  remove_stream(1);
  add_stream(2);
}

static void visit_stream(void *closure, hipmm_stream_t stream)
{
  (void)closure;
  for (int n = 0; n < 2; n++)
    if (stream == STREAM(n) && !is_alive[n]) interleave_note("a stream is visited that was destroyed");
}

static void visit_streams(void)
{
  stream_registry_visit(1, visit_stream, NULL);
}

static void remove_one(void)
{
  remove_stream(1);
}

/* ---- Handles ---- */

static void *object;
static atomic_int n_closed;

static void begin_handle(void)
{
  begin_stack();
  atomic_store(&n_closed, 0);
  object = handle_new(stack);
  handle_open(object, HANDLE_BUFFER);
  stack_release(stack); /* the object has it now */
}

static void close_handle(void)
{
  if (mistake == NO_CLOSE ? !handle_is(object, HANDLE_BUFFER) : !handle_close(object, HANDLE_BUFFER)) return;
  atomic_fetch_add_explicit(&n_closed, 1, memory_order_relaxed);
  handle_free(object);
}

static void end_handle(void)
{
  if (atomic_load(&n_closed) != 1) interleave_note("an object is not destroyed once");
  if (handle_count()) interleave_note("objects are counted that are freed");
  end_without_stack();
}

/* All objects are in one shard, that of the first thread. */
static void make_object(void)
{
  object = handle_new(stack);
  handle_open(object, HANDLE_BUFFER);
}

static void begin_handle_of_first(void)
{
  begin_stack();
  atomic_store(&n_closed, 0);
  interleave_alone(FIRST, make_object);
  stack_release(stack);
}

static void make_and_free_twice(void)
{
  for (int i = 0; i < 2; i++) {
    void *made = handle_new(NULL);
    if (!made || made == object)
      interleave_note("an object is given out twice");
    else if (i)
      handle_free(made);
    else if (!handle_try_free(made))
      interleave_note("an object without a stack is not freed");
  }
}

static void count_and_close_handle(void)
{
  size_t count = handle_count();
  if (count < 1 || count > 2) interleave_note("the count of objects is wrong");
  if (handle_close(object, HANDLE_BUFFER) && !handle_try_free(object)) handle_free(object);
  atomic_fetch_add_explicit(&n_closed, 1, memory_order_relaxed);
}

static const struct interleave_scenario scenarios[] = {
    {"a walk beside the last release", begin_stack, {walk, release}, end_without_stack, 6},
    {"a walk beside hipmm_finalize()", begin_stack, {walk, finalize_stacks}, end_without_stack, 6},
    {"a list of stacks beside the last release", begin_stack, {collect, release}, end_without_stack, 6},
    {"a name beside the last release", begin_stack, {use_by_name, release}, end_without_stack, 6},
    {"a pin that becomes a reference", begin_stack, {pin_and_retain, release}, end_without_stack, 6},
    {"two releases", begin_two_references, {release, release}, end_without_stack, INTERLEAVE_UNBOUNDED},
    {"a release that may be the last",
     begin_two_references,
     {try_and_release, release},
     end_without_stack,
     INTERLEAVE_UNBOUNDED},
    {"two walks", begin_stack, {walk, pin_and_retain}, release, 6},
    {"a walk beside a new stack", begin_stack, {walk, add_and_release}, end_with_two, 6},
    {"a call beside hipmm_finalize()", begin_known_call, {call_twice, finalize}, NULL, 6},
    {"a thread's first call beside it", begin_call, {call, finalize}, NULL, 6},
    {"a call within a call beside it", begin_known_call, {call_within_call, finalize}, NULL, 6},
    {"a call at a thread's end beside it", begin_call_at_the_end, {call, finalize}, NULL, 6},
    {"a thread's end beside it", begin_known_call, {call_and_end, finalize}, NULL, 6},
    {"a resource in force that is replaced", begin_current, {call_with_borrowed, replace_current}, end_current, 6},
    {"streams that are found beside changes", begin_streams, {find_stream, remove_and_add}, end_streams, 6},
    {"streams that are visited beside a removal", begin_streams, {visit_streams, remove_one}, end_streams, 6},
    {"streams that are visited twice", begin_streams, {visit_streams, visit_streams}, NULL, 6},
    {"an object that two threads destroy", begin_handle, {close_handle, close_handle}, end_handle, 6},
    {"objects of one shard", begin_handle_of_first, {make_and_free_twice, count_and_close_handle}, end_handle, 4},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void all_orders_are_right(void **state)
{
  (void)state;
  mistake = NO_MISTAKE;
  unsigned long runs = 0;
  const char *wrong = interleave_explore_all(scenarios, SCENARIOS, &runs);
  if (wrong) fail_msg("%s", wrong);
  assert_true(runs > 1000);
}

static void all_orders_are_right_on_a_weaker_processor(void **state)
{
  interleave_weaken_processor(true);
  all_orders_are_right(state);
  interleave_weaken_processor(false);
}

static void finds_each_mistake(void **state)
{
  static const char *const names[] = {[NO_FENCE] = "hipmm_finalize() without the fence",
                                      [WEAK_STACK] = "references without acquire and release",
                                      [NO_AWAIT] = "no wait for pins",
                                      [NO_VISITOR] = "a stream that is not left to its visitor",
                                      [NO_CLOSE] = "an object that is seen, and not closed"};
  (void)state;
  for (mistake = NO_MISTAKE + 1; mistake < MISTAKES; mistake++)
    assert_true(interleave_finds(scenarios, SCENARIOS, names[mistake], NULL));
}

/* The registry retains its entries. */
static void make_entries(void)
{
  find_bucket();
  for (int n = 0; n < 3; n++) add_stream(n);
  for (int n = 0; n < 3; n++) stream_registry_remove(STREAM(n), STREAM_OF_PROGRAM, end_stream);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_orders_are_right),
      cmocka_unit_test(all_orders_are_right_on_a_weaker_processor),
      cmocka_unit_test(finds_each_mistake),
  };
  make_entries();
  return cmocka_run_group_tests_name("interleavings of the core", tests, NULL, NULL);
}
