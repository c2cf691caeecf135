/* SPDX-License-Identifier: MIT */
/* interleave.h: two threads in all orders of their steps. The files that are explored are compiled as they are, with
 * -fsanitize=thread: the compiler then reports each access to memory to a runtime, which here is not ThreadSanitizer's but
 * interleave_access.c. Locks come here by the linker's --wrap, and fences by name. The threads are coroutines of one thread, so one
 * runs at a time; each decision comes from choices.h.
 *
 * A step is an operation that the other thread can tell of: on an atomic variable that both use and one changes, on a mutex,
 * or a fence on all processors. Other accesses commute, provided that none is a race; and each race is found: an access that C11
 * does not order after the other thread's access to the same bytes fails the run. So a missing acquire or release shows, although
 * x86-64 never needs one. So does an access to memory that was freed, or that another thread got and may still be filling.
 *
 * Memory is that of x86-64: a store that is not sequentially consistent waits in the thread's own store buffer, in order, and
 * reaches memory later; the thread itself sees it at once. So a missing fence shows. A fence on all processors finds those
 * stores of the other thread that the compiler must have put before it, by a fence of its own. A weaker processor such as
 * aarch64's is shown in part (interleave_weaken_processor()). Loads in another order than the program's are not shown.
 *
 * With a bound, a thread is interrupted at most so often in one run; that a thread waits, or ends, does not count. What a store
 * buffer holds reaches memory at a fence, and where the other thread takes over, as far as the decision says. */
#ifndef HIPMM_TESTS_EXPLORE_INTERLEAVE_H
#define HIPMM_TESTS_EXPLORE_INTERLEAVE_H

#include <stdbool.h>
#include <stddef.h>

enum { INTERLEAVE_THREADS = 2, INTERLEAVE_UNBOUNDED = 1 << 20 };

struct interleave_scenario {
  const char *name;
  void (*begin)(void); /* makes the data before each run; not a thread's. NULL: nothing */
  void (*threads[INTERLEAVE_THREADS])(void);
  void (*end)(
      void); /* after both have ended: checks, and releases the data. Not called after a failure. NULL: nothing */
  unsigned most_interruptions;
};

/* What malloc() and calloc() give in a run ends with the run: what the code under test retains for longer is made before.
 *
 * Runs the scenario in all orders with at most that many interruptions. NULL, or what went wrong first: a race, what a thread
 * noted, or that both wait for ever. Adds the number of runs. */
const char *interleave_explore(const struct interleave_scenario *explored, unsigned long *runs_out);

/* The same for several, each of which it prints. What went wrong begins with the name of the scenario. */
const char *interleave_explore_all(const struct interleave_scenario *scenarios, size_t n, unsigned long *runs_out);

/* Whether the search finds something wrong in one of the scenarios, that begins with `expected` (NULL: anything, a crash too).
 * Prints it. In a child process, since what a failed run leaves behind is of no use. */
bool interleave_finds(const struct interleave_scenario *scenarios, size_t n, const char *mistake, const char *expected);

/* In a thread, and in `end`: what must not be. In a thread: its number; a step of the test itself; its end, for all that waits
 * for the end of threads. */
void interleave_note(const char *what);
int interleave_self(void);
void interleave_step(void);
void interleave_end_thread(void);

/* In `begin` and `end`: calls the function as if the thread did. */
void interleave_alone(int thread, void (*run)(void));

/* In `begin`: the plain accesses to these bytes are steps, and no races: what is read without an order is checked afterwards. */
void interleave_share(const void *start, size_t bytes);

/* For all runs from here on: the processor is weaker. A sequentially consistent operation has the strength of acquire and release,
 * and the store of a change (an exchange, an addition, …) may reach memory after later loads, as on aarch64. */
void interleave_weaken_processor(bool weakens);

/* In `begin`, mistakes: the atomic variables in these bytes have no order; fences on all processors do nothing. */
void interleave_weaken(const void *start, size_t bytes);
void interleave_drop_fences(void);

#endif
