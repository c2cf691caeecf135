/* SPDX-License-Identifier: MIT */
/* reserving.c: an adaptor that shares memory out by reservations. Over its upstream it keeps a budget (budget.h). A resource with
 * "reservation" is a part of the resource of this type below it. It has no memory until hipmm_reserve() gives it some. It
 * allocates from the budget's upstream, and no more than it has.
 *
 * The budget knows every block and the holder that pays for it, so a block that outlives its reservation may be freed through
 * the budget. Sizes count rounded up to 256 bytes. The room that a block leaves counts after the upstream has freed it. */
#include "../common/descriptor.h"
#include "../common/live_blocks.h"
#include "../common/sizes.h"
#include "budget.h"

#include "../../core/base/units.h"
#include <stdio.h>

struct reserving_options {
  uint32_t reservation;
  uint64_t limit;
  int64_t progress_timeout;
  uint32_t when_stuck;
};

enum when_stuck { OVERBOOK, FAIL };

/* A block, and who pays for it. */
struct paid_block {
  struct live_block block;
  struct budget_holder *holder;
};

struct reserving {
  const struct hipmm_services *services;
  struct reserving *root; /* itself, or that of which it is a reservation */
  struct budget_holder *holder;

  /* Of a root. */
  struct hipmm_resource *upstream;
  struct budget budget;
  struct live_blocks live;
};

static bool reserving_is_root(const struct reserving *reserving)
{
  return reserving->root == reserving;
}

static void reserving_free_holder(const struct reserving *root, struct budget_holder *holder)
{
  root->services->host_free(root->services, holder, sizeof *holder);
}

/* ---- Blocks ---- */

static __attribute__((noinline)) enum hipmm_status reserving_refuse(struct reserving *reserving, size_t bytes,
                                                                    enum budget_answer answer)
{
  const struct hipmm_services *services = reserving->services;
  if (reserving_is_root(reserving)) {
    struct budget_counts counts = budget_count(&reserving->budget);
    return services->refuse(
        services, HIPMM_E_LIMIT,
        "cannot allocate {0:bytes} without a reservation: {1:bytes} of {2:bytes} are reserved or in "
        "use; reserve the memory (hipmm_reserve()), which waits for room",
        bytes, counts.held_bytes, counts.limit_bytes);
  }
  struct budget_holder seen = budget_look(&reserving->root->budget, reserving->holder);
  if (answer == BUDGET_CLOSED)
    return services->refuse(services, HIPMM_E_STATE,
                            "cannot allocate {0:bytes}: this reservation was released, or never had memory", bytes, 0,
                            0);
  return services->refuse(services, HIPMM_E_LIMIT,
                          "cannot allocate {0:bytes}: {1:bytes} of the {2:bytes} of this reservation are in use; free "
                          "some, or ask for more (hipmm_reservation_resize())",
                          bytes, seen.used_bytes, seen.bytes);
}

static void reserving_unspend(struct reserving *root, struct budget_holder *holder, size_t bytes)
{
  if (budget_unspend(&root->budget, holder, sizes_counted(bytes))) reserving_free_holder(root, holder);
}

/* A record that is there already is of a block that was freed below the budget, where nobody saw it. */
static enum hipmm_status reserving_record(struct reserving *root, const struct paid_block *paid, size_t alignment)
{
  struct paid_block replaced = {.holder = NULL};
  if (live_blocks_insert(&root->live, paid, &replaced)) {
    if (replaced.block.ptr) reserving_unspend(root, replaced.holder, replaced.block.bytes);
    return HIPMM_OK;
  }
  if (hipmm_upstream_deallocate(root->upstream, paid->block.ptr, paid->block.bytes, alignment, paid->block.stream))
    root->services->log(root->services, HIPMM_LOG_ERROR, "%p could be neither recorded nor freed: it is lost",
                        paid->block.ptr);
  return HIPMM_E_OUT_OF_MEMORY;
}

static enum hipmm_status reserving_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                            void **ptr_out)
{
  struct reserving *reserving = self, *root = reserving->root;
  struct paid_block paid = {.block = {.bytes = bytes, .stream = stream}, .holder = reserving->holder};
  if (!bytes) return hipmm_upstream_allocate(root->upstream, bytes, alignment, stream, ptr_out);
  enum budget_answer answer = budget_spend(&root->budget, reserving->holder, sizes_counted(bytes));
  if (answer != BUDGET_GRANTED) return reserving_refuse(reserving, bytes, answer);
  enum hipmm_status status = hipmm_upstream_allocate(root->upstream, bytes, alignment, stream, &paid.block.ptr);
  if (!status) status = reserving_record(root, &paid, alignment);
  if (status)
    reserving_unspend(root, reserving->holder, bytes);
  else
    *ptr_out = paid.block.ptr;
  return status;
}

static enum hipmm_status reserving_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                              hipmm_stream_t stream)
{
  struct reserving *root = ((struct reserving *)self)->root;
  struct paid_block paid;
  if (!ptr) return hipmm_upstream_deallocate(root->upstream, ptr, bytes, alignment, stream);
  enum hipmm_status status = live_blocks_extract(&root->live, ptr, bytes, &paid);
  if (status) return status;
  status = hipmm_upstream_deallocate(root->upstream, ptr, paid.block.bytes, alignment, stream);
  if (status) {
    live_blocks_restore(&root->live, &paid);
    return status;
  }
  live_blocks_settle(&root->live, ptr);
  reserving_unspend(root, paid.holder, paid.block.bytes);
  return HIPMM_OK;
}

static enum hipmm_status reserving_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  return live_blocks_find_block(&((struct reserving *)self)->root->live, ptr, block_out);
}

static enum hipmm_status reserving_trim(void *self, size_t keep_bytes)
{
  (void)keep_bytes; /* of device memory, which the upstream holds */
  live_blocks_trim(&((struct reserving *)self)->root->live);
  return HIPMM_OK;
}

/* ---- Reservations ---- */

static enum hipmm_status reserving_refuse_root(const struct reserving *reserving)
{
  return reserving->services->fail(reserving->services, HIPMM_E_ARGUMENT, NULL,
                                   "is no reservation; hipmm_reserve() makes one");
}

static enum hipmm_status reserving_explain(struct reserving *reserving, enum budget_answer answer, uint64_t bytes,
                                           int64_t timeout_ns, const char *holders)
{
  const struct hipmm_services *services = reserving->services;
  struct budget_counts counts = budget_count(&reserving->root->budget);
  char why[96] = "";
  if (answer == BUDGET_CLOSED)
    return services->fail(services, HIPMM_E_STATE, NULL, "has memory already; resize it, or reserve another");
  if (answer == BUDGET_TOO_LARGE)
    return services->fail(services, HIPMM_E_LIMIT, NULL,
                          "cannot reserve %s: %s can be reserved in all; reserve less, or set a higher \"limit\" of %s",
                          UNITS_BYTES(bytes), UNITS_BYTES(counts.limit_bytes), reserving->root->services->name);
  if (answer == BUDGET_STUCK)
    snprintf(why, sizeof why, "nobody gave anything back for %.3g s",
             (double)reserving->root->budget.patience_ns / 1e9);
  else if (timeout_ns)
    snprintf(why, sizeof why, "the timeout of %.3g s is over", (double)timeout_ns / 1e9);
  return services->fail(
      services, HIPMM_E_LIMIT, NULL, "cannot reserve %s now: of %s, %s are held, and %llu other requests wait%s%s%s%s",
      UNITS_BYTES(bytes), UNITS_BYTES(counts.limit_bytes), UNITS_BYTES(counts.held_bytes),
      (unsigned long long)counts.waiting, *why ? "; " : "", why, *holders ? "; holders: " : "", holders);
}

static enum hipmm_status reserving_reserve(void *self, uint64_t bytes, int64_t timeout_ns, int64_t priority)
{
  struct reserving *reserving = self;
  char holders[1024] = "";
  if (reserving_is_root(reserving)) return reserving_refuse_root(reserving);
  enum hipmm_status status = timeout_ns ? reserving->services->check_wait(reserving->services) : HIPMM_OK;
  if (status) return status;
  uint64_t rounded = sizes_counted(bytes);
  enum budget_answer answer = budget_reserve(&reserving->root->budget, reserving->holder, rounded, timeout_ns, priority,
                                             holders, sizeof holders);
  return answer == BUDGET_GRANTED ? HIPMM_OK : reserving_explain(reserving, answer, rounded, timeout_ns, holders);
}

static enum hipmm_status reserving_resize(void *self, uint64_t bytes)
{
  struct reserving *reserving = self;
  const struct hipmm_services *services = reserving->services;
  if (reserving_is_root(reserving)) return reserving_refuse_root(reserving);
  uint64_t rounded = sizes_counted(bytes);
  enum budget_answer answer = budget_resize(&reserving->root->budget, reserving->holder, rounded);
  if (answer == BUDGET_GRANTED) return HIPMM_OK;
  if (answer == BUDGET_CLOSED)
    return services->fail(services, HIPMM_E_STATE, NULL, "cannot be resized: it was released, or never had memory");
  struct budget_holder seen = budget_look(&reserving->root->budget, reserving->holder);
  struct budget_counts counts = budget_count(&reserving->root->budget);
  if (answer == BUDGET_TOO_LARGE)
    return services->fail(services, HIPMM_E_LIMIT, NULL, "cannot shrink to %s: %s are in use; free some first",
                          UNITS_BYTES(rounded), UNITS_BYTES(seen.used_bytes));
  return services->fail(
      services, HIPMM_E_LIMIT, NULL,
      "cannot grow from %s to %s now: of %s, %s are held, and %llu requests wait; a second reservation can "
      "wait for more",
      UNITS_BYTES(seen.bytes), UNITS_BYTES(rounded), UNITS_BYTES(counts.limit_bytes), UNITS_BYTES(counts.held_bytes),
      (unsigned long long)counts.waiting);
}

static enum hipmm_status reserving_release(void *self)
{
  struct reserving *reserving = self;
  if (reserving_is_root(reserving)) return reserving_refuse_root(reserving);
  if (budget_release(&reserving->root->budget, reserving->holder) == BUDGET_GRANTED) return HIPMM_OK;
  return reserving->services->fail(reserving->services, HIPMM_E_STATE, NULL,
                                   "was released already, or never had memory");
}

static const struct hipmm_reserving reserving_functions = {
    .struct_size = sizeof reserving_functions,
    .reserve = reserving_reserve,
    .resize = reserving_resize,
    .release = reserving_release,
};

/* ---- Values and settings ---- */

enum reserving_value { LIMIT_BYTES, HELD_BYTES, USED_BYTES, OVERBOOKED_BYTES, OVERBOOKED, WAITING, WAITS, WAITED_NS };

static const struct hipmm_feature reserving_values[] = {
    [LIMIT_BYTES] = {"limit_bytes", "bytes", "What may be reserved; of a reservation, what it has"},
    [HELD_BYTES] = {"held_bytes", "bytes", "What is reserved, or in use without an open reservation"},
    [USED_BYTES] = {"used_bytes", "bytes", "Memory allocated now, each size rounded up to 256 bytes"},
    [OVERBOOKED_BYTES] = {"overbooked_bytes", "bytes", "How far what is held exceeds the limit"},
    [OVERBOOKED] = {"overbooked", "reservations", "Reservations that were granted above the limit"},
    [WAITING] = {"waiting", "requests", "Requests for a reservation that wait now"},
    [WAITS] = {"waits", "requests", "Requests that have waited"},
    [WAITED_NS] = {"waited_ns", "ns", "The time that they waited, together"},
};

static enum hipmm_status reserving_query(void *self, size_t index, int64_t *value_out)
{
  struct reserving *reserving = self;
  struct budget *budget = &reserving->root->budget;
  struct budget_counts counts = budget_count(budget);
  if (!reserving_is_root(reserving)) {
    struct budget_holder seen = budget_look(budget, reserving->holder);
    counts.held_bytes = seen.is_open ? seen.bytes : seen.used_bytes;
    counts.limit_bytes = counts.held_bytes;
    counts.used_bytes = seen.used_bytes;
  }
  uint64_t above = counts.held_bytes > counts.limit_bytes ? counts.held_bytes - counts.limit_bytes : 0;
  const uint64_t values[] = {[LIMIT_BYTES] = counts.limit_bytes,
                             [HELD_BYTES] = counts.held_bytes,
                             [USED_BYTES] = counts.used_bytes,
                             [OVERBOOKED_BYTES] = above,
                             [OVERBOOKED] = counts.overbooked,
                             [WAITING] = counts.waiting,
                             [WAITS] = counts.waits,
                             [WAITED_NS] = (uint64_t)counts.waited_ns};
  *value_out = (int64_t)values[index];
  return HIPMM_OK;
}

static enum hipmm_status reserving_reconfigure(void *self, const char *option, const void *options)
{
  struct reserving *reserving = self;
  const struct reserving_options *given = options;
  (void)option;
  if (reserving_is_root(reserving))
    budget_set(&reserving->budget, given->limit, given->progress_timeout, given->when_stuck == OVERBOOK);
  return HIPMM_OK;
}

static void reserving_validate(const struct hipmm_validation *validation, const void *options)
{
  const struct reserving_options *given = options;
  if (!given->limit && !validation->is_unknown(validation, "limit"))
    validation->warn(validation, "limit", "is 0, so nothing can be reserved; write the most bytes, such as \"8GiB\"");
}

/* ---- Its life ---- */

static enum hipmm_status reserving_create(const struct hipmm_services *services, const void *options,
                                          struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct reserving_options *given = options;
  (void)n_upstreams; /* one, as the descriptor says */
  bool is_root = !given->reservation;
  if (!is_root && upstreams[0]->ops->reserving != &reserving_functions)
    return services->fail(services, HIPMM_E_CONFIG, "reservation", "needs a reserving resource as the upstream");
  struct reserving *reserving = services->host_allocate(services, sizeof *reserving);
  if (!reserving)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  reserving->services = services;
  reserving->root = is_root ? reserving : ((struct reserving *)upstreams[0]->self)->root;
  *self_out = reserving;
  if (is_root) {
    reserving->upstream = upstreams[0];
    budget_open(&reserving->budget, given->limit, given->progress_timeout, given->when_stuck == OVERBOOK);
    live_blocks_open(&reserving->live, services, sizeof(struct paid_block));
    reserving->holder = &reserving->budget.own;
    return HIPMM_OK;
  }
  const struct hipmm_services *lasting = reserving->root->services; /* a holder may outlive its reservation */
  reserving->holder = lasting->host_allocate(lasting, sizeof *reserving->holder);
  if (reserving->holder) {
    reserving->holder->name = services->name;
    return HIPMM_OK;
  }
  services->host_free(services, reserving, sizeof *reserving);
  return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the reservation");
}

static void reserving_free_left(void *closure, void *record)
{
  struct paid_block *paid = record;
  struct reserving *root = closure;
  if (paid->holder != root->holder) reserving_unspend(root, paid->holder, paid->block.bytes);
}

/* No reservation of a root is left, but blocks may be. */
static void reserving_destroy(void *self)
{
  struct reserving *reserving = self;
  if (!reserving_is_root(reserving)) {
    if (budget_abandon(&reserving->root->budget, reserving->holder))
      reserving_free_holder(reserving->root, reserving->holder);
  } else {
    live_blocks_lock(&reserving->live);
    live_blocks_each(&reserving->live, reserving_free_left, reserving);
    live_blocks_unlock(&reserving->live);
    live_blocks_close(&reserving->live);
    budget_close(&reserving->budget);
  }
  reserving->services->host_free(reserving->services, reserving, sizeof *reserving);
}

static const char *const reserving_stuck_words[] = {"overbook", "fail", NULL};

static const struct hipmm_option reserving_option_table[] = {
    {.name = "reservation",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct reserving_options, reservation),
     .initial = "false",
     .doc = "Whether it is a reservation of the reserving resource below it, such as hipmm_reserve() makes; a "
            "reservation has no other options"},
    {.name = "limit",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT | HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct reserving_options, limit),
     .initial = "90%",
     .unit = "bytes",
     .doc = "The most that may be reserved and allocated through this resource at once"},
    {.name = "progress_timeout",
     .type = HIPMM_OPTION_DURATION,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct reserving_options, progress_timeout),
     .initial = "10s",
     .doc = "How long requests wait while none is granted and no memory is given back, until when_stuck decides about "
            "the smallest"},
    {.name = "when_stuck",
     .type = HIPMM_OPTION_ENUM,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct reserving_options, when_stuck),
     .initial = "overbook",
     .choices = reserving_stuck_words,
     .doc = "Whether the smallest request is then granted above the limit, or fails with the names of the holders"},
};

static const struct hipmm_ops reserving_ops = {
    .struct_size = sizeof reserving_ops,
    .allocate = reserving_allocate,
    .deallocate = reserving_deallocate,
    .trim = reserving_trim,
    .query = reserving_query,
    .find = reserving_find,
    .reconfigure = reserving_reconfigure,
    .reserving = &reserving_functions,
};

HIPMM_EXPORT extern const struct hipmm_plugin reserving_LTX_hipmm_plugin;

const struct hipmm_plugin reserving_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(reserving_option_table, struct reserving_options),
    .type = "reserving",
    .version = "1.0",
    .doc = "Shares memory out by reservations (hipmm_reserve()), which wait for their turn",
    PLUGIN_VALUES(reserving_values),
    .ops = &reserving_ops,
    .create = reserving_create,
    .destroy = reserving_destroy,
    .validate = reserving_validate,
};
