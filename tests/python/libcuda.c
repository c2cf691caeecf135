/* SPDX-License-Identifier: MIT */
/* libcuda.c: stands in for NVIDIA's driver in the tests of hipmm_numba.py. Notes what it is asked for. */
#include <stddef.h>
#include <string.h>

#pragma GCC visibility push(default)

int cuEventCreate(void **event_out, unsigned flags);
int cuEventRecord(void *event, void *stream);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuMemGetInfo_v2(size_t *free_out, size_t *total_out);

/* The names of the calls since this was last called, each with a space behind it. */
const char *fake_calls(void);

#pragma GCC visibility pop

static char noted[4096], told[4096];

static void note(const char *call)
{
  strncat(noted, call, sizeof noted - strlen(noted) - 1);
}

int cuEventCreate(void **event_out, unsigned flags)
{
  (void)flags;
  note("cuEventCreate ");
  *event_out = noted;
  return 0;
}

int cuEventRecord(void *event, void *stream)
{
  if (event != noted || stream) return 1;
  note("cuEventRecord ");
  return 0;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
  if (event != noted || stream || flags) return 1;
  note("cuStreamWaitEvent ");
  return 0;
}

int cuMemGetInfo_v2(size_t *free_out, size_t *total_out)
{
  *free_out = (size_t)3 << 20;
  *total_out = (size_t)5 << 20;
  return 0;
}

const char *fake_calls(void)
{
  strcpy(told, noted);
  noted[0] = 0;
  return told;
}
