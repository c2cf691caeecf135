/* SPDX-License-Identifier: MIT */
/* hooks.c: see hooks.h. Called by every hook and by the report. Calls nothing of hipmm's but text.h, and never
 * allocates: the program may be out of memory, or inside of malloc(). */
#include "hooks.h"

#include "../../core/base/output_file.h"
#include "../../core/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOOK_NAME(api, name, ...)     #api #name,
#define HOOK_REPORTED(api, name, ...) true,
#define HOOK_SILENT(api, name, ...)   false,
static const char *const names[] = {HOOKS(HOOK_NAME, HOOK_NAME, HOOK_NAME, HOOK_NAME, HOOK_NAME, HOOK_NAME)};
static const bool reported[] = {HOOKS(HOOK_REPORTED, HOOK_SILENT, HOOK_SILENT, HOOK_SILENT, HOOK_SILENT, HOOK_SILENT)};
static const bool of_work[] = {HOOKS(HOOK_SILENT, HOOK_SILENT, HOOK_SILENT, HOOK_SILENT, HOOK_REPORTED, HOOK_SILENT)};

static struct {
  atomic_uint_fast64_t calls, passed, failed;
} counts[HOOK_COUNT];

const char *hook_name(enum hook hook)
{
  return names[hook];
}

bool hook_is_reported(enum hook hook)
{
  return reported[hook];
}

bool hook_is_of_work(enum hook hook)
{
  return of_work[hook];
}

enum hook hook_find(const char *name)
{
  int hook = 0;
  while (hook < HOOK_COUNT && strcmp(names[hook], name) != 0) hook++;
  return (enum hook)hook;
}

void hook_count(enum hook hook, enum outcome outcome)
{
  atomic_fetch_add_explicit(&counts[hook].calls, 1, memory_order_relaxed);
  if (outcome == OUTCOME_PASSED) atomic_fetch_add_explicit(&counts[hook].passed, 1, memory_order_relaxed);
  if (outcome == OUTCOME_FAILED) atomic_fetch_add_explicit(&counts[hook].failed, 1, memory_order_relaxed);
}

struct hook_counts hook_counts(enum hook hook)
{
  return (struct hook_counts){atomic_load(&counts[hook].calls), atomic_load(&counts[hook].passed),
                              atomic_load(&counts[hook].failed)};
}

void hook_reset_counts(void)
{
  for (int i = 0; i < HOOK_COUNT; i++) {
    atomic_store(&counts[i].calls, 0);
    atomic_store(&counts[i].passed, 0);
    atomic_store(&counts[i].failed, 0);
  }
}

/* ---- The calling thread ---- */

static _Thread_local unsigned depth HOOK_STATIC_TLS;
static _Thread_local int errors[FAMILY_COUNT] HOOK_STATIC_TLS;

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

/* ---- Messages ---- */

static void message_write_arguments(const char *format, va_list arguments)
{
  char line[3000] = "hipmm: ";
  enum { HEAD = 7 };
  int saved = errno, more = vsnprintf(line + HEAD, sizeof line - HEAD - 1, format, arguments);
  if (more < 0) line[HEAD] = '\0';
  size_t length = text_make_plain(line);
  line[length++] = '\n';
  output_file_write(STDERR_FILENO, line, length, NULL); /* there is no other place for it */
  errno = saved;
}

void message_write(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  message_write_arguments(format, arguments);
  va_end(arguments);
}

void message_write_once(atomic_bool *is_written, const char *format, ...)
{
  if (atomic_exchange(is_written, true)) return;
  va_list arguments;
  va_start(arguments, format);
  message_write_arguments(format, arguments);
  va_end(arguments);
}
