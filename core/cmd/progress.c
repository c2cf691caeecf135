/* SPDX-License-Identifier: MIT */
/* progress.c: a bar on standard error while a long job runs. Never on anything but a terminal. */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS_CELLS = 30, PROGRESS_PAUSE_NS = 100 * 1000 * 1000 };

static long long progress_now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void progress_start(struct progress *progress, const char *label)
{
  const char *term = getenv("TERM");
  *progress = (struct progress){.label = label,
                                .visible = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0,
                                .shown_ns = progress_now_ns()};
}

void progress_show(struct progress *progress, uint64_t done, uint64_t total)
{
  if (!progress->visible) return;
  long long now_ns = progress_now_ns();
  if (now_ns - progress->shown_ns < PROGRESS_PAUSE_NS) return;
  progress->shown_ns = now_ns;
  if (total == 0) {
    fprintf(stderr, "\r\033[K%s  %llu MiB", progress->label, (unsigned long long)(done >> 20));
    return;
  }
  double share = done < total ? (double)done / (double)total : 1;
  fprintf(stderr, "\r\033[K%s  ", progress->label);
  for (int i = 0; i < PROGRESS_CELLS; i++) fputs(i < (int)(share * PROGRESS_CELLS) ? "█" : "░", stderr);
  fprintf(stderr, " %3d%%", (int)(share * 100));
}

void progress_end(struct progress *progress)
{
  if (progress->visible) fputs("\r\033[K", stderr);
}
