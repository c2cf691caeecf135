/* SPDX-License-Identifier: MIT */
/* reentry.c: see thread.h. */
#include "reentry.h"

static _Thread_local unsigned depth;
static _Thread_local int errors[FAMILY_COUNT];

bool thread_enter(void)
{
  return depth++ == 0;
}

void thread_leave(void)
{
  depth--;
}

int thread_finish(enum hook hook, enum outcome outcome, int code)
{
  if (depth == 1) hook_count(hook, outcome);
  thread_leave();
  return code;
}

unsigned thread_depth(void)
{
  return depth;
}

void thread_set_error(enum family family, int code)
{
  errors[family] = code;
}

int thread_error(enum family family)
{
  return errors[family];
}
