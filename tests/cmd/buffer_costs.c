/* SPDX-License-Identifier: MIT */
/* buffer_costs.c: buffers that are made and dropped, for bench_counts.sh. Measures what lies between buffers_start() and
 * buffers_stop().
 *
 *   buffer_costs usual|try */
#include <hipmm/buffer.h>
#include <hipmm/hipmm.h>

#include <stdio.h>
#include <string.h>

enum { BUFFERS = 10000, BYTES = 4096 };

void buffers_start(void);
void buffers_stop(void);

/* Callgrind finds them by name. */
__attribute__((noinline)) void buffers_start(void)
{
  __asm__ volatile("");
}

__attribute__((noinline)) void buffers_stop(void)
{
  __asm__ volatile("");
}

static int make_and_drop(int n, int tries)
{
  int wrong = 0;
  for (int i = 0; i < n; i++) {
    struct hipmm_buffer *buffer = NULL;
    if (tries)
      wrong += !hipmm_buffer_try_create(NULL, BYTES, NULL, &buffer) || !hipmm_buffer_try_destroy(buffer);
    else
      wrong += hipmm_buffer_create(NULL, BYTES, NULL, &buffer) || hipmm_buffer_destroy(buffer);
  }
  return wrong;
}

int main(int n_words, char **words)
{
  if (n_words != 2 || hipmm_init_from_string("{\"stack\": [\"pool\", \"device\"]}")) return 2;
  int wrong = make_and_drop(10, 0);
  buffers_start();
  wrong += make_and_drop(BUFFERS, !strcmp(words[1], "try"));
  buffers_stop();
  if (wrong) fprintf(stderr, "%d calls failed\n", wrong);
  return wrong || hipmm_finalize();
}
