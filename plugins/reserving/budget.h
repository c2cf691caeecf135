/* SPDX-License-Identifier: MIT */
/* budget.h: bytes that may be reserved, who holds them, and who waits for them. One lock guards all of it.
 *
 * Waiters form a queue: a higher priority comes first, and equal priorities come in the order of their arrival. Only the first
 * is granted bytes, so no later request takes what a large one waits for. A holder that waits for more while the others
 * wait for it would wait for ever. So when nothing was granted or given back for `patience_ns`, the smallest request of the queue
 * is granted bytes above the limit, or fails.
 *
 * Invariant: held_bytes is the sum over all holders of `bytes` while they are open, and of `used_bytes` afterwards. */
#ifndef HIPMM_PLUGINS_RESERVING_BUDGET_H
#define HIPMM_PLUGINS_RESERVING_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A reservation. The budget's own holder is never open: it stands for all blocks without a reservation. */
struct budget_holder {
  struct budget_holder *previous, *next;
  const char *name;
  uint64_t bytes, used_bytes;
  bool is_open, is_abandoned; /* abandoned: freed with its last block */
};

struct budget_waiter {
  struct budget_waiter *next;
  uint64_t bytes;
  int64_t priority;
};

struct budget_counts {
  uint64_t limit_bytes, held_bytes, used_bytes, waiting, waits, overbooked;
  int64_t waited_ns;
};

struct budget {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct budget_counts counts;
  struct budget_holder own, *holders; /* `holders`: those that hold bytes, but the own one */
  struct budget_waiter *waiters;
  int64_t patience_ns, progress_ns; /* progress: the time at which the queue moved last */
  bool overbooks;
};

enum budget_answer { BUDGET_GRANTED, BUDGET_CLOSED, BUDGET_TOO_LARGE, BUDGET_FULL, BUDGET_STUCK };

void budget_open(struct budget *budget, uint64_t limit_bytes, int64_t patience_ns, bool overbooks);
void budget_close(struct budget *budget);

/* Reserves `bytes` for a holder that has none. Waits at most `timeout_ns` (below 0: for ever). Not granted: `holders_out` names
 * those who hold bytes, and the holder is as it was. */
enum budget_answer budget_reserve(struct budget *budget, struct budget_holder *holder, uint64_t bytes,
                                  int64_t timeout_ns, int64_t priority, char *holders_out, size_t holders_bytes);

/* Changes what an open holder has. Never waits. FULL: there is no room, or others wait; TOO_LARGE: less than is in use. */
enum budget_answer budget_resize(struct budget *budget, struct budget_holder *holder, uint64_t bytes);

/* Gives back what the holder has not used. Blocks keep the rest until they are freed. CLOSED: it has nothing. */
enum budget_answer budget_release(struct budget *budget, struct budget_holder *holder);

/* The same for a holder that nobody refers to any more. True: it has no block, and the caller frees it now. */
bool budget_abandon(struct budget *budget, struct budget_holder *holder);

/* A block of the holder. unspend returns whether it was the last one of an abandoned holder, which the caller then frees. */
enum budget_answer budget_spend(struct budget *budget, struct budget_holder *holder, uint64_t bytes);
bool budget_unspend(struct budget *budget, struct budget_holder *holder, uint64_t bytes);

void budget_set(struct budget *budget, uint64_t limit_bytes, int64_t patience_ns, bool overbooks);
struct budget_counts budget_count(struct budget *budget);

/* A holder's bytes at one moment. */
struct budget_holder budget_look(struct budget *budget, const struct budget_holder *holder);

#endif
