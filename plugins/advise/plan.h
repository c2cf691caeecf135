/* SPDX-License-Identifier: MIT */
/* plan.h: the options of `advise` as the calls of hipMemAdvise that they come to. Called by advise.c when the
 * resource is made and when an option is set anew. */
#ifndef HIPMM_ADVISE_PLAN_H
#define HIPMM_ADVISE_PLAN_H

#include <hipmm/plugin.h>

#include <stdbool.h>

struct plan_options {
  uint32_t read_mostly, coarse_grain;
  const char *preferred_location;
  struct hipmm_strings accessed_by;
};

struct plan_step {
  int advice, device;
};

struct plan {
  size_t bytes; /* of this struct */
  size_t count;
  struct plan_step steps[];
};

/* `is_on`: the resource's device can be advised; then the devices that the
 * options name must be too. */
enum hipmm_status plan_make(const struct hipmm_services *services, const struct plan_options *options, bool is_on,
                            struct plan **plan_out);

/* A plan with the steps of both, each once. NULL, and no report, when there is no host memory. */
struct plan *plan_join(const struct hipmm_services *services, const struct plan *first, const struct plan *second);

void plan_free(const struct hipmm_services *services, struct plan *plan);

#endif
