/* SPDX-License-Identifier: MIT */
/* message.c: see message.h. Never allocates: the program may be out of memory, or inside of malloc(). */
#include "message.h"
#include "../core/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static void message_write_arguments(const char *format, va_list arguments)
{
  char line[3000] = "hipmm: ";
  enum { HEAD = 7 };
  int saved = errno, more = vsnprintf(line + HEAD, sizeof line - HEAD - 1, format, arguments);
  if (more < 0) line[HEAD] = '\0';
  size_t length = text_make_plain(line);
  line[length++] = '\n';
  if (write(STDERR_FILENO, line, length) < 0) errno = saved; /* there is no other place for it */
  errno = saved;
}

void message_write(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  message_write_arguments(format, arguments);
  va_end(arguments);
}

void message_write_once(atomic_bool *said, const char *format, ...)
{
  if (atomic_exchange(said, true)) return;
  va_list arguments;
  va_start(arguments, format);
  message_write_arguments(format, arguments);
  va_end(arguments);
}
