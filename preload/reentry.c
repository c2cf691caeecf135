/* SPDX-License-Identifier: MIT */
/* reentry.c: see thread.h. */
#include "reentry.h"

static _Thread_local unsigned depth;
static _Thread_local int errors[FAMILY_COUNT];

bool reentry_enter(void)
{
  return depth++ == 0;
}

void reentry_leave(void)
{
  depth--;
}

int reentry_finish(enum hook hook, enum outcome outcome, int code)
{
  if (depth == 1) hook_count(hook, outcome);
  reentry_leave();
  return code;
}

unsigned reentry_depth(void)
{
  return depth;
}

void reentry_set_error(enum family family, int code)
{
  errors[family] = code;
}

int reentry_error(enum family family)
{
  return errors[family];
}
