/* SPDX-License-Identifier: MIT */
/* lock_order.c: see lock_order.h. Compiled with --enable-checks alone, into a library of its own: libhipmm, plugins,
 * runtimes and preload share one list of the locks that each thread holds. A violation is written to standard error,
 * with both locks and where each was taken, and the process aborts.
 *
 * Locks of one rank of LOCK_NESTS may be held together: each order in which two of them were taken is noted, and the
 * opposite order, by any thread and at any later time, is a violation. */
#ifndef HIPMM_CHECKS
#define HIPMM_CHECKS
#define LOCK_ORDER_IS_CHECKER
#endif
#include "../../../core/base/lock_order.h"
#include "lock_ranks.h"

#include <execinfo.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES = 12, MOST_HELD = 48, MOST_EDGES = 4096, FRAME_BYTES = 1 << 18 };

struct lock_order_trace {
  const struct lock_order_site *site;
  void *frames[FRAMES];
};

/* A lock that the thread holds, or a call of the program: `lock` NULL. */
struct lock_order_held {
  const void *lock;
  const struct lock_row *row;
  struct lock_order_trace trace;
};

/* `second` was taken under `first`. */
struct lock_order_edge {
  const void *first, *second;
  struct lock_order_trace trace;
};

static _Thread_local struct lock_order_held held[MOST_HELD];
static _Thread_local int n_held;

static atomic_flag edges_lock = ATOMIC_FLAG_INIT;
static struct lock_order_edge edges[MOST_EDGES];
static size_t n_edges;

/* ---- Violations ---- */

/* By frame pointers, which a build with checks keeps: the walk ends where the next frame is no plausible one. */
static void lock_order_trace(struct lock_order_trace *trace, const struct lock_order_site *site)
{
  void *const *frame = __builtin_frame_address(0);
  int n = 0;
  trace->site = site;
  for (; n < FRAMES && frame[1]; n++) {
    void *const *next = frame[0];
    trace->frames[n] = frame[1];
    if (next <= frame || (uintptr_t)next - (uintptr_t)frame > FRAME_BYTES || (uintptr_t)next % sizeof *next) break;
    frame = next;
  }
  if (n < FRAMES) trace->frames[n] = NULL;
}

static void lock_order_print_trace(const char *words, const struct lock_order_trace *trace)
{
  int n = 0;
  while (n < FRAMES && trace->frames[n]) n++;
  dprintf(STDERR_FILENO, "%s at %s:%d:\n", words, trace->site->file, trace->site->line);
  backtrace_symbols_fd(trace->frames, n, STDERR_FILENO);
}

static const char *lock_order_rank_name(const struct lock_row *row)
{
  return lock_ranks[row->rank].name;
}

/* `earlier`: where the other lock was taken; NULL: there is none. */
static _Noreturn void lock_order_fail(const char *what, const struct lock_order_site *site, const struct lock_row *row,
                                      const struct lock_row *other, const struct lock_order_trace *earlier)
{
  struct lock_order_trace now;
  lock_order_trace(&now, site);
  dprintf(STDERR_FILENO, "hipmm: lock order: %s: %s (%s", what, site->expression ? site->expression : "the program",
          row ? row->file : site->file);
  if (row && site->expression) dprintf(STDERR_FILENO, ", rank %d \"%s\"", row->rank + 1, lock_order_rank_name(row));
  dprintf(STDERR_FILENO, ")");
  if (other && earlier->site->expression)
    dprintf(STDERR_FILENO, " and %s (%s, rank %d \"%s\")", earlier->site->expression, other->file, other->rank + 1,
            lock_order_rank_name(other));
  dprintf(STDERR_FILENO, "\n");
  if (earlier) lock_order_print_trace("the other was taken", earlier);
  lock_order_print_trace("now", &now);
  abort();
}

/* ---- The table ---- */

/* The part of a path from core/, plugins/ or tools/ on; NULL: a file that the table does not concern. */
static const char *lock_order_own_file(const char *file)
{
  static const char *const folders[] = {"core/", "plugins/", "tools/"};
  if (strstr(file, "tests/") || strstr(file, "tools/command/")) return NULL;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const char *part = strstr(file, folders[i]);
    if (part && (part == file || part[-1] == '/')) return part;
  }
  return NULL;
}

static const struct lock_row *lock_order_find_row_of(const char *file, const char *expression)
{
  for (const struct lock_row *row = lock_rows; row->file; row++)
    if (!strcmp(row->file, file) && (!row->expression || !strcmp(row->expression, expression))) return row;
  return NULL;
}

/* The row of the lock; NULL: the table does not concern it. */
static const struct lock_row *lock_order_find_row(const struct lock_order_site *site)
{
  const char *file = lock_order_own_file(site->file);
  if (!file) return NULL;
  const struct lock_row *row = lock_order_find_row_of(file, site->expression);
  if (!row && site->kind) row = lock_order_find_row_of(site->kind, site->expression);
  if (row) return row;
  lock_order_fail("this lock has no row in tests/lab/locks/lock_ranks.h", site, NULL, NULL, NULL);
}

/* ---- Orders of locks of one rank ---- */

static const struct lock_order_edge *lock_order_find_edge(const void *first, const void *second)
{
  for (size_t i = 0; i < n_edges; i++)
    if (edges[i].first == first && edges[i].second == second) return &edges[i];
  return NULL;
}

/* An edge out of `from` on a way to `to`; NULL if there is no way. Orders have no circle, so the search ends. */
static const struct lock_order_edge *lock_order_find_way(const void *from, const void *to)
{
  for (size_t i = 0; i < n_edges; i++)
    if (edges[i].first == from && (edges[i].second == to || lock_order_find_way(edges[i].second, to))) return &edges[i];
  return NULL;
}

static void lock_order_note(const struct lock_order_held *first, const void *second, const struct lock_row *row,
                            const struct lock_order_site *site)
{
  while (atomic_flag_test_and_set(&edges_lock)) continue;
  if (!lock_order_find_edge(first->lock, second)) {
    const struct lock_order_edge *other = lock_order_find_way(second, first->lock);
    if (other) lock_order_fail("two locks are taken in both orders", site, row, first->row, &other->trace);
    if (n_edges == MOST_EDGES) lock_order_fail("too many pairs of locks", site, row, NULL, NULL);
    edges[n_edges].first = first->lock;
    edges[n_edges].second = second;
    lock_order_trace(&edges[n_edges++].trace, site);
  }
  atomic_flag_clear(&edges_lock);
}

void lock_order_forget(const void *lock)
{
  while (atomic_flag_test_and_set(&edges_lock)) continue;
  for (size_t i = 0; i < n_edges;)
    if (edges[i].first == lock || edges[i].second == lock)
      edges[i] = edges[--n_edges];
    else
      i++;
  atomic_flag_clear(&edges_lock);
}

/* ---- What a thread holds ---- */

static bool lock_order_is_held(const void *lock)
{
  for (int i = 0; i < n_held; i++)
    if (held[i].lock == lock) return true;
  return false;
}

static bool lock_order_holds_rank(enum lock_rank rank)
{
  for (int i = 0; i < n_held; i++)
    if (held[i].lock && held[i].row->rank == rank) return true;
  return false;
}

/* Whether two locks of a rank may be held together; a violation of their own order does not return. */
static bool lock_order_may_nest(const struct lock_order_held *first, const void *second, const struct lock_row *row,
                                const struct lock_order_site *site)
{
  if (row->flags & LOCK_NESTS) lock_order_note(first, second, row, site);
  if (row->flags & LOCK_GUARDED) return lock_order_holds_rank(row->rank - 1);
  if (row->flags & LOCK_ASCENDS) return (uintptr_t)second > (uintptr_t)first->lock;
  return row->flags & LOCK_NESTS;
}

/* A function of the program begins the order anew in its calls of hipmm; what the thread holds beyond must not be taken
 * again. */
void lock_order_check_site(const void *lock, const struct lock_order_site *site)
{
  const struct lock_row *row = lock_order_find_row(site);
  bool is_anew = false;
  if (!row || row->flags & LOCK_UNCHECKED) return;
  for (int i = n_held - 1; i >= 0; i--) {
    const struct lock_order_held *other = &held[i];
    if (!other->lock) is_anew = true;
    if (!other->lock) continue;
    if (other->lock == lock) lock_order_fail("a lock is taken twice", site, row, other->row, &other->trace);
    if (is_anew || other->row->rank < row->rank) continue;
    if (other->row->rank > row->rank || !lock_order_may_nest(other, lock, row, site))
      lock_order_fail("a lock is taken under one that must be taken after it", site, row, other->row, &other->trace);
  }
}

/* A function of the program that runs under locks must not wait for a lock that another thread may hold around such a
 * function: that thread may wait for this one. */
void lock_order_wait_site(const void *lock, const struct lock_order_site *site)
{
  const struct lock_row *row = lock_order_find_row(site);
  bool is_in_program = false;
  lock_order_check_site(lock, site);
  if (!row || row->flags & (LOCK_UNCHECKED | LOCK_REFUSES) || !(LOCK_OF_RESOURCE & LOCK_BIT(row->rank))) return;
  for (int i = n_held - 1; i >= 0; i--) {
    const struct lock_order_held *other = &held[i];
    if (!other->lock) is_in_program = true;
    if (is_in_program && other->lock && LOCK_OF_RESOURCE & LOCK_BIT(other->row->rank))
      lock_order_fail("a function of the program under a lock of a resource waits for another", site, row, other->row,
                      &other->trace);
  }
}

static void lock_order_add(const void *lock, const struct lock_row *row, const struct lock_order_site *site)
{
  if (n_held == MOST_HELD) lock_order_fail("too many locks at once", site, row, NULL, NULL);
  held[n_held].lock = lock;
  held[n_held].row = row;
  lock_order_trace(&held[n_held].trace, site);
  n_held++;
}

void lock_order_push_site(const void *lock, const struct lock_order_site *site)
{
  const struct lock_row *row = lock_order_find_row(site);
  if (row && !(row->flags & LOCK_UNCHECKED)) lock_order_add(lock, row, site);
}

/* Locks need not be left in the opposite order. */
void lock_order_pop(const void *lock)
{
  int i = n_held - 1;
  while (i >= 0 && held[i].lock != lock) i--;
  if (i < 0) return;
  n_held--;
  memmove(&held[i], &held[i + 1], (size_t)(n_held - i) * sizeof *held);
}

bool lock_order_is_refused(const void *lock, const struct lock_order_site *site)
{
  const struct lock_row *row = lock_order_find_row(site);
  return row && row->flags & LOCK_REFUSES && lock_order_is_held(lock);
}

/* ---- Functions of the program ---- */

void lock_order_enter_program_site(const struct lock_order_site *site)
{
  const char *file = lock_order_own_file(site->file);
  const struct lock_program *program = lock_programs;
  while (program->file && strcmp(program->file, file ? file : "")) program++;
  if (!program->file)
    lock_order_fail("this call of the program has no row in tests/lab/locks/lock_ranks.h", site, NULL, NULL, NULL);
  for (int i = n_held - 1; i >= 0 && held[i].lock; i--)
    if (!(program->ranks >> held[i].row->rank & 1))
      lock_order_fail("a function of the program is called under a lock", site, NULL, held[i].row, &held[i].trace);
  lock_order_add(NULL, NULL, site);
}

void lock_order_leave_program(void)
{
  lock_order_pop(NULL);
}
