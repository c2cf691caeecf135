/* SPDX-License-Identifier: MIT */
/* plan.h: the calls of hipMemAdvise that the options of `advise` stand for. Called by advise.c when the resource is
 * created and when an option changes. */
#ifndef HIPMM_PLUGINS_ADVISE_PLAN_H
#define HIPMM_PLUGINS_ADVISE_PLAN_H

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

/* Reports places that are none, and warns where there is no advice. plan_make() gets only options without an error. */
void plan_validate(const struct hipmm_validation *validation, const struct plan_options *options);

/* `is_on`: the resource's device accepts advice; then every device that the options name must accept it too. */
enum hipmm_status plan_make(const struct hipmm_services *services, const struct plan_options *options, bool is_on,
                            struct plan **plan_out);

/* A plan with the steps of both, each once. NULL, without a report, if host memory is short. */
struct plan *plan_join(const struct hipmm_services *services, const struct plan *first, const struct plan *second);

void plan_free(const struct hipmm_services *services, struct plan *plan);

#endif
