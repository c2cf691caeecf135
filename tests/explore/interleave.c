/* SPDX-License-Identifier: MIT */
/* interleave.c: the threads, and the search over all orders. A thread is a coroutine: it has a stack of its own, and the
 * thread-local storage of a real thread that waits meanwhile, so that the code under test finds its _Thread_local variables. */
#include "interleave.h"
#include "choices.h"
#include "interleave_memory.h"

#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <asm/prctl.h>
#endif

enum { STACK_BYTES = 256 << 10, MOST_STEPS = 20000, MOST_PAUSES = 3000, LOOKS = 3 };

struct thread {
  ucontext_t context;
  bool is_over, is_paused;
  const int *holder; /* the thread waits until this is 0; NULL: it does not */
  const volatile void *looked_at;
  uint64_t seen;
  unsigned looks; /* in a row, at the same value */

  /* The real thread, whose storage is used. */
  pthread_t lender;
  sem_t ready, done;
  unsigned long storage; /* the address of its block, in the processor's register for it */
  char *saved;           /* its variables of this program as they were at first */
};

static struct thread threads[INTERLEAVE_THREADS];
static _Alignas(16) char stacks[INTERLEAVE_THREADS][STACK_BYTES];
static ucontext_t main_context;
static unsigned long main_storage;
static struct choices choices;
static const struct interleave_scenario *scenario;
int interleave_running = INTERLEAVE_NOBODY, interleave_caller = INTERLEAVE_NOBODY;
unsigned interleave_accesses;
static unsigned interruptions_left, steps, pauses;
static bool has_no_fences;
static char failure[1200];

int interleave_self(void)
{
  return interleave_caller;
}

/* ---- Thread-local storage ---- */

static struct {
  ptrdiff_t offset; /* of the program's variables, from the block's address */
  size_t bytes;
} local;

static int interleave_find_local(struct dl_phdr_info *info, size_t size, void *closure)
{
  (void)size, (void)closure;
  for (size_t i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS) {
      local.bytes = info->dlpi_phdr[i].p_memsz;
      local.offset = (char *)info->dlpi_tls_data - (char *)main_storage;
    }
  return 1; /* the program is the first */
}

#if defined(__x86_64__)
static unsigned long interleave_storage(void)
{
  unsigned long storage = 0;
  syscall(SYS_arch_prctl, ARCH_GET_FS, &storage);
  return storage;
}

/* The instruction, where the kernel allows it (bit 1 of AT_HWCAP2), takes a hundredth of the call's time. */
static void interleave_use_storage(unsigned long storage)
{
  if (getauxval(AT_HWCAP2) & 2)
    __asm__ volatile("wrfsbase %0" : : "r"(storage) : "memory");
  else
    syscall(SYS_arch_prctl, ARCH_SET_FS, storage);
}
#elif defined(__aarch64__)
static unsigned long interleave_storage(void)
{
  unsigned long storage;
  __asm__ volatile("mrs %0, tpidr_el0" : "=r"(storage));
  return storage;
}

static void interleave_use_storage(unsigned long storage)
{
  __asm__ volatile("msr tpidr_el0, %0" : : "r"(storage) : "memory");
}
#endif

static void *interleave_lend(void *thread_)
{
  struct thread *thread = thread_;
  thread->storage = interleave_storage();
  memcpy(thread->saved, (char *)thread->storage + local.offset, local.bytes);
  sem_post(&thread->ready);
  while (sem_wait(&thread->done)) continue;
  return NULL;
}

static void interleave_make_threads(void)
{
  main_storage = interleave_storage();
  dl_iterate_phdr(interleave_find_local, NULL);
  for (struct thread *thread = threads; thread < threads + INTERLEAVE_THREADS; thread++) {
    sem_init(&thread->ready, 0, 0);
    sem_init(&thread->done, 0, 0);
    thread->saved = malloc(local.bytes + 1);
    if (!thread->saved || pthread_create(&thread->lender, NULL, interleave_lend, thread)) abort();
    while (sem_wait(&thread->ready)) continue;
  }
}

static void interleave_drop_threads(void)
{
  for (struct thread *thread = threads; thread < threads + INTERLEAVE_THREADS; thread++) {
    sem_post(&thread->done);
    pthread_join(thread->lender, NULL);
    free(thread->saved);
  }
}

static void interleave_restore_storage(const struct thread *thread)
{
  memcpy((char *)thread->storage + local.offset, thread->saved, local.bytes);
}

void interleave_alone(int thread, void (*run)(void))
{
  int before = interleave_caller;
  interleave_caller = thread;
  interleave_use_storage(threads[thread].storage);
  run();
  interleave_use_storage(before == INTERLEAVE_NOBODY ? main_storage : threads[before].storage);
  interleave_caller = before;
}

/* ---- Failures ---- */

/* The run ends here: its threads never go on. */
static void interleave_stop(void)
{
  interleave_running = interleave_caller = INTERLEAVE_NOBODY;
  interleave_use_storage(main_storage);
  setcontext(&main_context);
}

void interleave_fail(const char *format, ...)
{
  va_list arguments;
  if (!*failure) {
    va_start(arguments, format);
    vsnprintf(failure, sizeof failure, format, arguments);
    va_end(arguments);
  }
  if (interleave_running != INTERLEAVE_NOBODY) interleave_stop();
}

void interleave_note(const char *what)
{
  interleave_fail("%s", what);
}

/* ---- Who goes on ---- */

static bool interleave_can_go_on(const struct thread *thread)
{
  return !thread->is_over && !thread->is_paused && !(thread->holder && *thread->holder);
}

void interleave_wake(void)
{
  for (int i = 0; i < INTERLEAVE_THREADS; i++) threads[i].is_paused = false;
}

/* Of the stores that wait in the buffer of the running thread, the oldest ones reach memory now; by default all. */
static void interleave_flush_some(void)
{
  size_t n = interleave_memory_waiting(interleave_running);
  interleave_memory_flush(interleave_running, n - choices_draw(&choices, n + 1));
}

static void interleave_switch(void)
{
  int from = interleave_running;
  interleave_running = interleave_caller = 1 - from;
  threads[interleave_running].looks = 0;
  interleave_use_storage(threads[interleave_running].storage);
  swapcontext(&threads[from].context, &threads[interleave_running].context);
}

void interleave_point(void)
{
  const struct thread *other = &threads[1 - interleave_running];
  if (++steps > MOST_STEPS) interleave_fail("the threads do not end");
  while (interruptions_left) {
    bool switches = interleave_can_go_on(other), flushes = interleave_memory_waiting(1 - interleave_running) > 0;
    uint64_t choice = choices_draw(&choices, 1u + switches + flushes);
    if (!choice) return;
    interruptions_left--;
    if (choice == 1 && switches) {
      interleave_flush_some();
      interleave_switch();
      return;
    }
    interleave_memory_flush(1 - interleave_running, 1);
  }
}

/* The running thread cannot go on: the other one does, or else what waits in a store buffer reaches memory. */
static void interleave_yield(void)
{
  const struct thread *self = &threads[interleave_running];
  if (interleave_can_go_on(&threads[1 - interleave_running])) {
    interleave_flush_some();
    interleave_switch();
  } else if (interleave_memory_waiting(0) + interleave_memory_waiting(1)) {
    for (int i = 0; i < INTERLEAVE_THREADS; i++) interleave_memory_flush(i, SIZE_MAX);
    interleave_wake();
  } else if ((!self->is_paused && !threads[1 - interleave_running].is_paused) || ++pauses > MOST_PAUSES) {
    interleave_fail("a thread waits for ever");
  } else {
    interleave_wake(); /* it may count its turns */
  }
}

void interleave_pause(void)
{
  threads[interleave_running].is_paused = true;
  while (!interleave_can_go_on(&threads[interleave_running])) interleave_yield();
}

void interleave_await(const int *holder)
{
  threads[interleave_running].holder = holder;
  while (!interleave_can_go_on(&threads[interleave_running])) interleave_yield();
  threads[interleave_running].holder = NULL;
}

void interleave_look(const volatile void *at, uint64_t value)
{
  struct thread *self = &threads[interleave_running];
  self->looks = self->looked_at == at && self->seen == value ? self->looks + 1 : 0;
  self->looked_at = at;
  self->seen = value;
  if (self->looks < LOOKS) return;
  self->looks = 0;
  interleave_pause();
}

void interleave_step(void)
{
  if (interleave_running != INTERLEAVE_NOBODY) interleave_point();
}

void interleave_end_thread(void)
{
  interleave_destroy_values(interleave_caller);
}

void interleave_drop_fences(void)
{
  has_no_fences = true;
}

bool interleave_has_no_fences(void)
{
  return has_no_fences;
}

/* ---- Runs ---- */

static void interleave_main(void)
{
  scenario->threads[interleave_running]();
  threads[interleave_running].is_over = true;
  while (!threads[1 - interleave_running].is_over) interleave_yield();
  interleave_stop();
}

static void interleave_begin_thread(struct thread *thread, char *stack)
{
  interleave_restore_storage(thread);
  thread->is_over = thread->is_paused = false;
  thread->holder = NULL;
  thread->looks = 0;
  getcontext(&thread->context);
  thread->context.uc_stack.ss_sp = stack;
  thread->context.uc_stack.ss_size = STACK_BYTES;
  makecontext(&thread->context, interleave_main, 0);
}

static void interleave_run_threads(void)
{
  volatile bool is_over = false;
  getcontext(&main_context);
  if (is_over) return;
  is_over = true;
  interleave_running = interleave_caller = (int)choices_draw(&choices, INTERLEAVE_THREADS);
  interleave_use_storage(threads[interleave_running].storage);
  setcontext(&threads[interleave_running].context);
}

/* HIPMM_TEST_INTERRUPTIONS=N: N more than the scenario says. */
static unsigned interleave_most_interruptions(void)
{
  const char *more = getenv("HIPMM_TEST_INTERRUPTIONS");
  return scenario->most_interruptions + (more ? (unsigned)strtoul(more, NULL, 10) : 0);
}

static void interleave_run(void)
{
  choices_begin(&choices);
  interleave_memory_begin();
  interruptions_left = interleave_most_interruptions();
  steps = pauses = interleave_accesses = 0;
  has_no_fences = false;
  for (int i = 0; i < INTERLEAVE_THREADS; i++) interleave_begin_thread(&threads[i], stacks[i]);
  interleave_open_heap(true);
  if (scenario->begin) scenario->begin();
  interleave_run_threads();
  for (int i = 0; i < INTERLEAVE_THREADS; i++) interleave_memory_flush(i, SIZE_MAX);
  if (!*failure && scenario->end) scenario->end();
  for (int i = 0; i < INTERLEAVE_THREADS; i++)
    if (!*failure)
      interleave_destroy_values(i);
    else
      interleave_forget_values(i);
  interleave_open_heap(false);
}

const char *interleave_explore(const struct interleave_scenario *explored, unsigned long *runs_out)
{
  bool goes_on = true;
  scenario = explored;
  *failure = '\0';
  choices.n_given = 0;
  interleave_memory_open();
  interleave_make_threads();
  for (unsigned long runs = 0; goes_on; *runs_out += goes_on ? 0 : runs) {
    interleave_run();
    runs++;
    bool begins_again = interleave_memory_was_shared() && !*failure;
    if (begins_again) choices.n_given = runs = 0; /* it has more steps than were known */
    goes_on = begins_again || (!*failure && choices_next(&choices));
  }
  interleave_drop_threads();
  if (!*failure) return NULL;
  size_t used = strlen(failure);
  used += (size_t)snprintf(failure + used, sizeof failure - used, ", with the decisions ");
  memcpy(choices.given, choices.taken, choices.n_taken * sizeof *choices.given);
  choices.n_given = choices.n_taken;
  choices_print(&choices, failure + used, sizeof failure - used);
  return failure;
}

const char *interleave_explore_all(const struct interleave_scenario *scenarios, size_t n, unsigned long *runs_out)
{
  static char text[400];
  for (size_t i = 0; i < n; i++) {
    unsigned long runs = 0;
    const char *wrong = interleave_explore(&scenarios[i], &runs);
    snprintf(text, sizeof text, "%s: %s", scenarios[i].name, wrong ? wrong : "");
    if (wrong) return text;
    printf("# %s: %lu orders\n", scenarios[i].name, runs);
    *runs_out += runs;
  }
  return NULL;
}

bool interleave_finds(const struct interleave_scenario *scenarios, size_t n, const char *mistake, const char *expected)
{
  int status = 0;
  fflush(NULL);
  pid_t child = fork();
  if (child < 0) abort();
  if (!child) {
    unsigned long runs = 0;
    const char *wrong = NULL;
    for (size_t i = 0; i < n && !wrong; i++) {
      wrong = interleave_explore(&scenarios[i], &runs);
      if (wrong) printf("# %s: found after %lu orders, in \"%s\": %s\n", mistake, runs, scenarios[i].name, wrong);
    }
    if (!wrong) printf("# %s: not found in %lu orders\n", mistake, runs);
    fflush(NULL);
    _exit(!wrong || (expected && strncmp(wrong, expected, strlen(expected)) != 0));
  }
  while (waitpid(child, &status, 0) != child) continue;
  if (WIFSIGNALED(status)) printf("# %s: found: signal %d ended the program\n", mistake, WTERMSIG(status));
  return WIFSIGNALED(status) ? !expected : WEXITSTATUS(status) == 0;
}
