/* SPDX-License-Identifier: MIT */
/* budget.c: see budget.h. Called by reserving.c. Calls no resource. */
#include "budget.h"

#include "../../core/base/deadline.h"
#include "../../core/base/text.h"
#include "../../core/base/units.h"
#include <time.h>

enum { NS_PER_S = 1000000000, MOST_NAMES = 5 };

void budget_open(struct budget *budget, uint64_t limit_bytes, int64_t patience_ns, bool overbooks)
{
  pthread_condattr_t attributes;
  *budget = (struct budget){.counts = {.limit_bytes = limit_bytes}, .patience_ns = patience_ns, .overbooks = overbooks};
  pthread_mutex_init(&budget->lock, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&budget->changed, &attributes);
  pthread_condattr_destroy(&attributes);
}

void budget_close(struct budget *budget)
{
  pthread_cond_destroy(&budget->changed);
  pthread_mutex_destroy(&budget->lock);
}

static int64_t budget_now(void)
{
  return (int64_t)monotonic_ns();
}

/* ---- Under the lock ---- */

/* What is held has become less, or the queue has moved: those who wait look again. */
static void budget_move(struct budget *budget)
{
  if (!budget->waiters) return;
  budget->progress_ns = budget_now();
  pthread_cond_broadcast(&budget->changed);
}

static uint64_t budget_room(const struct budget *budget)
{
  const struct budget_counts *counts = &budget->counts;
  return counts->held_bytes < counts->limit_bytes ? counts->limit_bytes - counts->held_bytes : 0;
}

static void budget_hold(struct budget *budget, struct budget_holder *holder, uint64_t bytes)
{
  holder->bytes = bytes;
  holder->is_open = true;
  budget->counts.held_bytes += bytes;
  holder->previous = NULL;
  holder->next = budget->holders;
  if (holder->next) holder->next->previous = holder;
  budget->holders = holder;
}

static void budget_remove(struct budget *budget, struct budget_holder *holder)
{
  if (holder->next) holder->next->previous = holder->previous;
  if (holder->previous)
    holder->previous->next = holder->next;
  else
    budget->holders = holder->next;
}

static void budget_name_holders(const struct budget *budget, char *text, size_t bytes)
{
  size_t n = 0;
  *text = '\0';
  for (const struct budget_holder *holder = budget->holders; holder; holder = holder->next, n++)
    if (n < MOST_NAMES)
      text_append(text, bytes, "%s%s (%s, %s of it in use)", n ? ", " : "", holder->name,
                  UNITS_BYTES(holder->is_open ? holder->bytes : holder->used_bytes), UNITS_BYTES(holder->used_bytes));
  if (n > MOST_NAMES) text_append(text, bytes, " and %zu more", n - MOST_NAMES);
  if (budget->own.used_bytes)
    text_append(text, bytes, "%sblocks without a reservation (%s)", n ? ", " : "", UNITS_BYTES(budget->own.used_bytes));
}

/* ---- The queue ---- */

static void budget_enqueue(struct budget *budget, struct budget_waiter *waiter)
{
  struct budget_waiter **at = &budget->waiters;
  if (!*at) budget->progress_ns = budget_now(); /* nobody waited, so nothing had to move */
  while (*at && (*at)->priority >= waiter->priority) at = &(*at)->next;
  waiter->next = *at;
  *at = waiter;
  budget->counts.waiting++;
}

static void budget_dequeue(struct budget *budget, const struct budget_waiter *waiter)
{
  struct budget_waiter **at = &budget->waiters;
  while (*at != waiter) at = &(*at)->next;
  *at = waiter->next;
  budget->counts.waiting--;
}

static bool budget_is_smallest(const struct budget *budget, const struct budget_waiter *waiter)
{
  const struct budget_waiter *smallest = budget->waiters;
  for (const struct budget_waiter *one = smallest; one; one = one->next)
    if (one->bytes < smallest->bytes) smallest = one;
  return smallest == waiter;
}

static void budget_wait(struct budget *budget, int64_t until_ns)
{
  const struct timespec until = {until_ns / NS_PER_S, until_ns % NS_PER_S};
  if (until_ns == INT64_MAX)
    pthread_cond_wait(&budget->changed, &budget->lock);
  else
    pthread_cond_timedwait(&budget->changed, &budget->lock, &until);
}

/* Waits as long as that may help. `end_ns`: of the timeout. */
static enum budget_answer budget_await(struct budget *budget, const struct budget_waiter *waiter, int64_t end_ns)
{
  for (;;) {
    if (waiter->bytes > budget->counts.limit_bytes) return BUDGET_TOO_LARGE; /* the limit may have been lowered */
    if (budget->waiters == waiter && waiter->bytes <= budget_room(budget)) return BUDGET_GRANTED;
    int64_t now = budget_now(), until = end_ns;
    if (now >= end_ns) return BUDGET_FULL;
    if (budget_is_smallest(budget, waiter)) {
      if (now - budget->progress_ns >= budget->patience_ns) return BUDGET_STUCK;
      if (budget->progress_ns + budget->patience_ns < until) until = budget->progress_ns + budget->patience_ns;
    }
    budget_wait(budget, until);
  }
}

enum budget_answer budget_reserve(struct budget *budget, struct budget_holder *holder, uint64_t bytes,
                                  int64_t timeout_ns, int64_t priority, char *holders_out, size_t holders_bytes)
{
  struct budget_waiter waiter = {.bytes = bytes, .priority = priority};
  pthread_mutex_lock(&budget->lock);
  int64_t start = budget_now(), end = timeout_ns < 0 || timeout_ns > INT64_MAX - start ? INT64_MAX : start + timeout_ns;
  bool is_at_once = budget->waiters == NULL && bytes <= budget_room(budget);
  enum budget_answer answer = BUDGET_GRANTED;
  if (holder->is_open || holder->used_bytes) {
    answer = BUDGET_CLOSED;
  } else if (!is_at_once) {
    budget_enqueue(budget, &waiter);
    answer = budget_await(budget, &waiter, end);
    budget_dequeue(budget, &waiter);
    budget->counts.waits += timeout_ns != 0;
    budget->counts.waited_ns += budget_now() - start;
    budget_move(budget);
  }
  bool is_above = answer == BUDGET_STUCK && budget->overbooks;
  if (is_above) answer = BUDGET_GRANTED;
  budget->counts.overbooked += is_above;
  if (answer == BUDGET_GRANTED)
    budget_hold(budget, holder, bytes);
  else
    budget_name_holders(budget, holders_out, holders_bytes);
  pthread_mutex_unlock(&budget->lock);
  return answer;
}

enum budget_answer budget_resize(struct budget *budget, struct budget_holder *holder, uint64_t bytes)
{
  enum budget_answer answer = BUDGET_GRANTED;
  pthread_mutex_lock(&budget->lock);
  uint64_t before = holder->bytes;
  bool grows = bytes > before;
  if (!holder->is_open)
    answer = BUDGET_CLOSED;
  else if (bytes < holder->used_bytes)
    answer = BUDGET_TOO_LARGE;
  else if (grows && (budget->waiters || bytes - before > budget_room(budget)))
    answer = BUDGET_FULL;
  if (answer == BUDGET_GRANTED) {
    holder->bytes = bytes;
    budget->counts.held_bytes += bytes - before; /* modulo 2^64, so less works too */
    if (bytes < before) budget_move(budget);
  }
  pthread_mutex_unlock(&budget->lock);
  return answer;
}

/* ---- Giving back ---- */

static bool budget_end(struct budget *budget, struct budget_holder *holder)
{
  if (!holder->is_open) return false;
  holder->is_open = false;
  budget->counts.held_bytes -= holder->bytes - holder->used_bytes;
  if (!holder->used_bytes) budget_remove(budget, holder);
  budget_move(budget);
  return true;
}

enum budget_answer budget_release(struct budget *budget, struct budget_holder *holder)
{
  pthread_mutex_lock(&budget->lock);
  bool was_open = budget_end(budget, holder);
  pthread_mutex_unlock(&budget->lock);
  return was_open ? BUDGET_GRANTED : BUDGET_CLOSED;
}

bool budget_abandon(struct budget *budget, struct budget_holder *holder)
{
  pthread_mutex_lock(&budget->lock);
  (void)budget_end(budget, holder);
  holder->is_abandoned = true;
  holder->name = "a reservation that was released";
  bool is_unused = !holder->used_bytes;
  pthread_mutex_unlock(&budget->lock);
  return is_unused;
}

/* ---- Blocks ---- */

enum budget_answer budget_spend(struct budget *budget, struct budget_holder *holder, uint64_t bytes)
{
  pthread_mutex_lock(&budget->lock);
  bool is_own = holder == &budget->own;
  uint64_t room = is_own ? budget_room(budget) : holder->bytes - holder->used_bytes;
  enum budget_answer answer = !is_own && !holder->is_open ? BUDGET_CLOSED : bytes > room ? BUDGET_FULL : BUDGET_GRANTED;
  if (answer == BUDGET_GRANTED) {
    holder->used_bytes += bytes;
    budget->counts.used_bytes += bytes;
    if (is_own) budget->counts.held_bytes += bytes;
  }
  pthread_mutex_unlock(&budget->lock);
  return answer;
}

bool budget_unspend(struct budget *budget, struct budget_holder *holder, uint64_t bytes)
{
  pthread_mutex_lock(&budget->lock);
  holder->used_bytes -= bytes;
  budget->counts.used_bytes -= bytes;
  bool is_last = !holder->is_open && !holder->used_bytes && holder != &budget->own;
  if (!holder->is_open) {
    budget->counts.held_bytes -= bytes;
    budget_move(budget);
  }
  if (is_last) budget_remove(budget, holder);
  bool is_unused = is_last && holder->is_abandoned;
  pthread_mutex_unlock(&budget->lock);
  return is_unused;
}

/* ---- Settings and counts ---- */

void budget_set(struct budget *budget, uint64_t limit_bytes, int64_t patience_ns, bool overbooks)
{
  pthread_mutex_lock(&budget->lock);
  budget->counts.limit_bytes = limit_bytes;
  budget->patience_ns = patience_ns;
  budget->overbooks = overbooks;
  budget_move(budget);
  pthread_mutex_unlock(&budget->lock);
}

struct budget_counts budget_count(struct budget *budget)
{
  pthread_mutex_lock(&budget->lock);
  struct budget_counts counts = budget->counts;
  pthread_mutex_unlock(&budget->lock);
  return counts;
}

struct budget_holder budget_look(struct budget *budget, const struct budget_holder *holder)
{
  pthread_mutex_lock(&budget->lock);
  struct budget_holder seen = *holder;
  pthread_mutex_unlock(&budget->lock);
  return seen;
}
