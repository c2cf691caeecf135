/* SPDX-License-Identifier: MIT */
/* interleave.c: see interleave.h. The threads are coroutines of one thread: each has a stack of its own, and runs from one step
 * to the next. */
#include "interleave.h"

#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

enum { STACK_BYTES = 64 << 10, MOST_STORES = 16, MOST_CONSTANTS = 8, MOST_BYTES = 8, NOBODY = -1 };

struct interleave_entry {
  volatile void *to;
  size_t bytes;
  unsigned char value[MOST_BYTES];
};

struct interleave_thread {
  ucontext_t context;
  void (*run)(void);
  bool is_over;
  bool is_paused;                              /* until something reaches memory */
  bool wants_mutex;                            /* which another thread holds */
  struct interleave_entry stores[MOST_STORES]; /* the store buffer, oldest first */
  size_t n_stores;
  struct thread_memory *memories;
};

static struct interleave_thread threads[INTERLEAVE_THREADS];
static _Alignas(16) char stacks[INTERLEAVE_THREADS][STACK_BYTES];
static ucontext_t scheduler;
static int current, mutex_holder;
static const char *failure;

static struct {
  const void *variable;
  int thread;
} constants[MOST_CONSTANTS];
static size_t n_constants;

void interleave_constant(const void *variable, int thread)
{
  constants[n_constants].variable = variable;
  constants[n_constants++].thread = thread;
}

int interleave_self(void)
{
  return current;
}

void interleave_note(const char *what)
{
  if (!failure) failure = what;
}

struct thread_memory **interleave_memories_of(int thread)
{
  return &threads[thread].memories;
}

struct thread_memory **interleave_memories(void)
{
  return interleave_memories_of(current);
}

/* ---- Memory ---- */

static void interleave_write(const struct interleave_entry *entry)
{
  memcpy((void *)(uintptr_t)entry->to, entry->value, entry->bytes);
  for (int i = 0; i < INTERLEAVE_THREADS; i++) threads[i].is_paused = false;
}

static void interleave_flush_one(struct interleave_thread *thread)
{
  interleave_write(&thread->stores[0]);
  memmove(&thread->stores[0], &thread->stores[1], --thread->n_stores * sizeof thread->stores[0]);
}

static void interleave_flush(struct interleave_thread *thread)
{
  while (thread->n_stores) interleave_flush_one(thread);
}

/* The last store to the variable that is in the thread's own buffer; NULL: none. */
static const struct interleave_entry *interleave_find_own(const volatile void *from)
{
  const struct interleave_thread *thread = &threads[current];
  for (size_t i = thread->n_stores; i-- > 0;)
    if (thread->stores[i].to == from) return &thread->stores[i];
  return NULL;
}

static bool interleave_is_constant(const volatile void *variable)
{
  for (size_t i = 0; i < n_constants; i++)
    if (constants[i].variable == variable && (constants[i].thread == INTERLEAVE_ANY || constants[i].thread == current))
      return true;
  return false;
}

/* ---- Steps ---- */

void interleave_step(void)
{
  swapcontext(&threads[current].context, &scheduler);
}

void interleave_load(const volatile void *from, void *to, size_t bytes)
{
  if (!interleave_find_own(from) && !interleave_is_constant(from)) interleave_step();
  const struct interleave_entry *own = interleave_find_own(from);
  memcpy(to, own ? own->value : (const void *)(uintptr_t)from, bytes);
}

/* A store that waits is no step: only when it reaches memory can another thread tell. */
void interleave_store(volatile void *to, const void *from, size_t bytes, bool is_sequential)
{
  struct interleave_entry entry = {.to = to, .bytes = bytes};
  struct interleave_thread *thread = &threads[current];
  memcpy(entry.value, from, bytes);
  if (is_sequential) interleave_step();
  if (is_sequential || thread->n_stores == MOST_STORES) interleave_flush(thread);
  if (is_sequential)
    interleave_write(&entry);
  else
    thread->stores[thread->n_stores++] = entry;
}

/* As all atomic changes, it is a full barrier of the thread. A wait comes after an attempt, which was a step. */
int interleave_lock(bool waits)
{
  if (!waits) interleave_step();
  while (waits && mutex_holder != NOBODY) {
    threads[current].wants_mutex = true;
    interleave_step();
  }
  interleave_flush(&threads[current]);
  if (mutex_holder != NOBODY) return 1;
  mutex_holder = current;
  return 0;
}

/* No step: to leave the mutex later lets nobody do more. */
int interleave_unlock(void)
{
  interleave_flush(&threads[current]);
  mutex_holder = NOBODY;
  for (int i = 0; i < INTERLEAVE_THREADS; i++) threads[i].wants_mutex = false;
  return 0;
}

/* membarrier(2): a barrier on every processor. */
void interleave_fence_all(void)
{
  interleave_step();
  for (int i = 0; i < INTERLEAVE_THREADS; i++) interleave_flush(&threads[i]);
}

void interleave_pause(void)
{
  threads[current].is_paused = true;
}

/* ---- Runs ---- */

static void interleave_main(void)
{
  threads[current].run();
  threads[current].is_over = true;
}

static void interleave_begin(void (*const runs[INTERLEAVE_THREADS])(void))
{
  failure = NULL;
  mutex_holder = NOBODY;
  for (int i = 0; i < INTERLEAVE_THREADS; i++) {
    struct thread_memory *memories = threads[i].memories;
    threads[i] = (struct interleave_thread){.run = runs[i], .memories = memories};
    getcontext(&threads[i].context);
    threads[i].context.uc_stack.ss_sp = stacks[i];
    threads[i].context.uc_stack.ss_size = STACK_BYTES;
    threads[i].context.uc_link = &scheduler;
    makecontext(&threads[i].context, interleave_main, 0);
    current = i;
    swapcontext(&scheduler, &threads[i].context); /* up to its first step */
  }
}

/* What can happen next: number i is thread i, and number INTERLEAVE_THREADS + i that its oldest store reaches memory. Once a
 * thread is alone, no order makes a difference. */
static size_t interleave_list(int *next)
{
  size_t n = 0;
  if (threads[0].is_over || threads[1].is_over)
    for (int i = 0; i < INTERLEAVE_THREADS; i++)
      if (!threads[i].is_over) interleave_flush(&threads[i]);
  for (int i = 0; i < INTERLEAVE_THREADS; i++)
    if (!threads[i].is_over && !threads[i].is_paused && !threads[i].wants_mutex) next[n++] = i;
  for (int i = 0; i < INTERLEAVE_THREADS; i++)
    if (threads[i].n_stores) next[n++] = INTERLEAVE_THREADS + i;
  return n;
}

const char *interleave_run(struct choices *choices, void (*const runs[INTERLEAVE_THREADS])(void))
{
  int next[2 * INTERLEAVE_THREADS];
  bool are_over = false;
  interleave_begin(runs);
  for (size_t n; !are_over && !failure && (n = interleave_list(next));) {
    int what = next[choices_draw(choices, n)];
    current = what % INTERLEAVE_THREADS;
    if (what < INTERLEAVE_THREADS)
      swapcontext(&scheduler, &threads[current].context);
    else
      interleave_flush_one(&threads[current]);
    are_over = threads[0].is_over && threads[1].is_over;
  }
  if (!are_over) interleave_note("both threads wait for ever");
  for (int i = 0; i < INTERLEAVE_THREADS; i++) interleave_flush(&threads[i]);
  n_constants = 0;
  return failure;
}
