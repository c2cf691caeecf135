/* SPDX-License-Identifier: MIT */
/* choices.c: see choices.h. */
#include "choices.h"
#include "../support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void choices_begin(struct choices *choices)
{
  choices->n_taken = 0;
  choices->draws = false;
}

void choices_seed(struct choices *choices, uint64_t seed)
{
  choices_begin(choices);
  choices->n_given = 0;
  choices->draws = true;
  choices->random = seed;
}

uint64_t choices_draw(void *arg, uint64_t limit)
{
  struct choices *choices = arg;
  uint32_t chosen = 0;
  if (limit < 2 || choices->n_taken == MOST_CHOICES) return 0;
  if (choices->n_taken < choices->n_given)
    chosen = choices->given[choices->n_taken] % (uint32_t)limit;
  else if (choices->draws)
    chosen = (uint32_t)random_below(&choices->random, limit);
  choices->taken[choices->n_taken] = chosen;
  choices->limits[choices->n_taken++] = (uint32_t)limit;
  return chosen;
}

static void choices_keep_taken(struct choices *choices)
{
  memcpy(choices->given, choices->taken, choices->n_taken * sizeof *choices->given);
  choices->n_given = choices->n_taken;
}

bool choices_next(struct choices *choices)
{
  choices_keep_taken(choices);
  while (choices->n_given && choices->given[choices->n_given - 1] + 1 == choices->limits[choices->n_given - 1])
    choices->n_given--;
  if (!choices->n_given) return false;
  choices->given[choices->n_given - 1]++;
  return true;
}

/* ---- Shrinking ---- */

struct choices_search {
  bool (*fails)(void *arg, struct choices *choices);
  void *arg;
  size_t runs, most_runs;
};

/* Keeps a list that still fails, without the zeros at its end. */
static bool choices_try(struct choices_search *search, struct choices *choices, const struct choices *changed)
{
  static struct choices run;
  if (search->runs == search->most_runs) return false;
  search->runs++;
  run = *changed;
  choices_begin(&run);
  if (!search->fails(search->arg, &run)) return false;
  memcpy(choices->given, changed->given, sizeof choices->given);
  choices->n_given = changed->n_given;
  while (choices->n_given && !choices->given[choices->n_given - 1]) choices->n_given--;
  return true;
}

/* Cuts runs of decisions out, long ones first. A step of a program is a few decisions: short runs are of every
 * length. */
static bool choices_cut(struct choices_search *search, struct choices *choices)
{
  static struct choices changed;
  bool is_shorter = false;
  for (size_t n = choices->n_given; n; n = n > 8 ? n / 2 : n - 1)
    for (size_t at = 0; at + n <= choices->n_given;) {
      changed = *choices;
      memmove(changed.given + at, changed.given + at + n, (choices->n_given - at - n) * sizeof *changed.given);
      changed.n_given -= n;
      if (choices_try(search, choices, &changed))
        is_shorter = true;
      else
        at++;
    }
  return is_shorter;
}

/* Each decision at the smallest number that still fails. */
static bool choices_lower(struct choices_search *search, struct choices *choices)
{
  static struct choices changed;
  bool is_lower = false;
  for (size_t at = 0; at < choices->n_given; at++)
    for (uint32_t number = 0; at < choices->n_given && number < choices->given[at]; number++) {
      changed = *choices;
      changed.given[at] = number;
      if (!choices_try(search, choices, &changed)) continue;
      is_lower = true;
      break;
    }
  return is_lower;
}

size_t choices_shrink(struct choices *choices, bool (*fails)(void *arg, struct choices *choices), void *arg,
                      size_t most_runs)
{
  struct choices_search search = {fails, arg, 0, most_runs};
  choices_keep_taken(choices);
  while (choices_cut(&search, choices) + choices_lower(&search, choices)) continue; /* both, each time */
  return search.runs;
}

/* ---- Text ---- */

void choices_print(const struct choices *choices, char *text, size_t bytes)
{
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < choices->n_given && used < bytes; i++)
    used += (size_t)snprintf(text + used, bytes - used, "%s%u", i ? "," : "", choices->given[i]);
}

void choices_read(struct choices *choices, const char *text)
{
  char *end = NULL;
  for (choices->n_given = 0; *text && choices->n_given < MOST_CHOICES; text = *end ? end + 1 : end)
    choices->given[choices->n_given++] = (uint32_t)strtoul(text, &end, 10);
}
