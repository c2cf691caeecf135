/* SPDX-License-Identifier: MIT */
/* say.c: see say.h. Never allocates: the program may be short of memory, or in the middle of malloc. */
#include "say.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static void say_arguments(const char *format, va_list arguments)
{
  char line[3000] = "hipmm: ";
  enum { HEAD = 7 };
  int saved = errno, more = vsnprintf(line + HEAD, sizeof line - HEAD - 1, format, arguments);
  size_t length = HEAD + (more > 0 ? (size_t)more : 0);
  if (length > sizeof line - 2) length = sizeof line - 2;
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) line[i] = '?';
  line[length++] = '\n';
  if (write(STDERR_FILENO, line, length) < 0) errno = saved; /* there is nowhere left to complain */
  errno = saved;
}

void preload_say(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  say_arguments(format, arguments);
  va_end(arguments);
}

void preload_say_once(atomic_bool *said, const char *format, ...)
{
  if (atomic_exchange(said, true)) return;
  va_list arguments;
  va_start(arguments, format);
  say_arguments(format, arguments);
  va_end(arguments);
}
