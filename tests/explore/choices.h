/* SPDX-License-Identifier: MIT */
/* choices.h: a run takes each of its decisions from a list of numbers. One search covers all lists, one draws lists
 * from a seed, and one makes a failing list shorter. A decision after the end of the list is 0, the simplest choice;
 * a number beyond the limit of its decision is taken modulo the limit. So every list is a run, also after a cut. */
#ifndef HIPMM_TESTS_EXPLORE_CHOICES_H
#define HIPMM_TESTS_EXPLORE_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_CHOICES = 4096 };

struct choices {
  uint32_t given[MOST_CHOICES]; /* to be taken */
  size_t n_given;
  uint32_t taken[MOST_CHOICES], limits[MOST_CHOICES]; /* in the run so far */
  size_t n_taken;
  bool draws; /* beyond the list, decisions are drawn */
  uint64_t random;
};

/* Begins a run of the list as it is. */
void choices_begin(struct choices *choices);

/* Begins a run that draws all decisions. */
void choices_seed(struct choices *choices, uint64_t seed);

/* A number below `limit`. One way is no decision. */
uint64_t choices_draw(void *choices, uint64_t limit);

/* Makes the list that of the next run in depth-first order; false after the last one. */
bool choices_next(struct choices *choices);

/* Makes the list what the last run took, and then shorter and smaller for as long as `fails` fails with it. Returns
 * the runs that this took; `most_runs` at most. */
size_t choices_shrink(struct choices *choices, bool (*fails)(void *arg, struct choices *choices), void *arg,
                      size_t most_runs);

/* The list as text, "3,0,1", and back. */
void choices_print(const struct choices *choices, char *text, size_t bytes);
void choices_read(struct choices *choices, const char *text);

#endif
